"""Passes an engine's answer on to the client, with back-pressure, and ends it as HTTP says.

Begins once something is there to show; how it is waited for is in `exchange`.
"""

import asyncio
import re
import time
from dataclasses import dataclass

from ..call import Call, Caller, Reply
from ..core import headers, sse
from ..core.choose import Choice
from ..core.sse import Tail
from ..errors import BrokenError, EngineError, LateError
from ..fleet import FleetStore
from ..metrics import Metrics
from ..settings import Limits
from ..wire.upstream import Answer, Upstream
from .patience import Patience

CACHED_TOKENS = re.compile(rb'"cached_tokens"\s*:\s*(\d+)')


@dataclass(frozen=True, slots=True)
class Tools:
    """What every exchange works with."""

    store: FleetStore
    upstream: Upstream
    metrics: Metrics
    limits: Limits


@dataclass(frozen=True, slots=True)
class Told:
    """What is said of a choice, and counted of its answer.

    Attributes:
        engine: name of the engine or the pair.
        choice: the reason, and what was expected.
        counted: whether what the client sees of speed comes from here.
    """

    engine: str
    choice: Choice
    counted: bool = True


@dataclass(frozen=True, slots=True)
class First:
    """An answer of which something is there.

    Attributes:
        data: complete events of a stream, else bytes of the body.
        tail: where the stream stands; ``None`` when it is no readable event stream.
        whole: whether ``data`` is all there is.
    """

    data: bytes
    tail: Tail | None
    whole: bool


class Relay:
    """One answer on its way to the client."""

    def __init__(self, tools: Tools, call: Call, told: Told, patience: Patience) -> None:
        self._tools = tools
        self._call = call
        self._told = told
        self._patience = patience
        self._writing = False
        self._report = b""

    async def run(self, answer: Answer, first: First, caller: Caller) -> bool:
        """Whether the answer broke off after it had begun."""
        if self._told.counted:
            self._tools.metrics.ttft.observe(time.monotonic() - self._call.received_s)
        pairs = headers.for_client(list(answer.headers.items())) + self._explanation()
        self._note(first.data)
        if first.whole:
            data, pairs = headers.readable(answer.status, pairs, first.data)
            reply = await caller.begin(answer.status, pairs, len(data))
            await reply.write(data)
            await reply.end()
            problem = None
        else:
            length = None if first.tail is not None else answer.headers.get("content-length")
            reply = await caller.begin(answer.status, pairs, int(length) if length else None)
            problem = await self._rest(answer, first, reply)
        self._count_cached(whole=first.whole)
        return problem is not None

    def _explanation(self) -> list[tuple[str, str]]:
        if not self._call.explain:
            return []
        words = f"{self._told.choice.label}: {self._told.choice.reason}"
        return [("x-hypic-engine", self._told.engine), ("x-hypic-choice", words)]

    async def _rest(self, answer: Answer, first: First, reply: Reply) -> EngineError | None:
        """Sends what is there and what follows; returns what broke it off."""
        try:
            await reply.write(first.data)
            problem = await self._pump(answer, first.tail, reply)
        except BaseException:
            reply.abort()
            raise
        if problem is not None and self._told.counted:
            self._tools.metrics.errors.labels(problem.code).inc()
        if problem is None:
            await reply.end()
        elif first.tail is None:
            reply.abort()
        else:
            await reply.write(sse.error_event(problem.body))
            await reply.end()
        return problem

    async def _pump(self, answer: Answer, tail: Tail | None, reply: Reply) -> EngineError | None:
        idle_s, now = self._tools.limits.idle_s, asyncio.get_running_loop().time
        observe = self._tools.metrics.inter_token.observe
        try:
            async with self._patience.within(idle_s):
                last_s = renewed_s = now()
                while chunk := await answer.read():
                    now_s = now()
                    if now_s - renewed_s > idle_s / 64:
                        self._patience.renew(now_s + idle_s)
                        renewed_s = now_s
                    ready = chunk
                    if tail is not None:
                        ready, tail = sse.passed(tail, chunk)
                        if not ready:
                            continue
                        self._note(ready)
                    observe(now_s - last_s)
                    last_s = now_s
                    self._writing = True
                    await reply.write(ready)
                    self._writing = False
        except EngineError as error:
            return error
        except TimeoutError:
            if self._writing and self._patience.given_up is None:
                raise ConnectionAbortedError("the client stopped reading") from None
            return self._patience.given_up or LateError(f"the engine was silent for {idle_s:.0f} s")
        return await _end(tail, reply)

    def _note(self, data: bytes) -> None:
        """Remembers what may hold the engine's count of cached tokens."""
        if b'"cached_tokens"' in data:
            self._report = data

    def _count_cached(self, *, whole: bool) -> None:
        counts = [int(count) for count in CACHED_TOKENS.findall(self._report)]
        if counts and self._told.counted:
            self._tools.metrics.actual.inc(sum(counts) if whole else counts[-1])
            self._tools.metrics.predicted.inc(self._told.choice.offer.held_tokens)


async def _end(tail: Tail | None, reply: Reply) -> EngineError | None:
    """What is wrong with where the engine ended its answer."""
    if tail is None or tail.ended:
        return None
    if tail.held.strip() == sse.DONE:
        await reply.write(tail.held)
        return None
    return BrokenError("the engine ended its stream before the end of the answer")
