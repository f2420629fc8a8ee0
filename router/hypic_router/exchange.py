"""One request at one engine: sends it, waits for the first piece, relays the rest.

Knows neither the server's nor the client's HTTP library. Leaving `Exchange.run` in any way,
cancelled too, closes the engine's connection unless the answer was read to its end, and that is
what makes the engine abort.
"""

import asyncio
import re
import time
from dataclasses import dataclass
from http import HTTPStatus

from .call import Call, Caller, Reply
from .core import headers, sse
from .core.prompt import Prompt
from .core.sse import Tail
from .errors import BrokenError, DrainingError, EngineError, LateError
from .fleet import FleetStore, Ticket
from .metrics import Metrics
from .settings import Limits
from .wire.upstream import Answer, Upstream

# A plain answer up to this size is sent whole, so that one that breaks off can be asked again.
WHOLE_BYTES = 1 << 20
CACHED_TOKENS = re.compile(rb'"cached_tokens"\s*:\s*(\d+)')


@dataclass(frozen=True, slots=True)
class Tools:
    """What every exchange works with."""

    store: FleetStore
    upstream: Upstream
    metrics: Metrics
    limits: Limits


@dataclass(frozen=True, slots=True)
class _First:
    """An answer of which something is there.

    Attributes:
        data: complete events of a stream, else bytes of the body.
        tail: where the stream stands; ``None`` when it is no readable event stream.
        whole: whether ``data`` is all there is.
    """

    data: bytes
    tail: Tail | None
    whole: bool


class Exchange:
    """One request at one engine."""

    def __init__(self, tools: Tools, ticket: Ticket, call: Call, prompt: Prompt) -> None:
        self._tools = tools
        self._ticket = ticket
        self._call = call
        self._prompt = prompt
        self._scope: asyncio.Timeout | None = None
        self._given_up: EngineError | None = None
        self._writing = False
        self._report = b""

    async def run(self, caller: Caller, *, fresh: bool) -> tuple[int, bool]:
        """The status that was sent, and whether the answer broke off after it had begun.

        Raises:
            EngineError: the engine failed before anything reached the client.
        """
        self._ticket.on_lost = self._lost
        limits = self._tools.limits
        answer: Answer | None = None
        try:
            async with asyncio.timeout(
                limits.first_byte_s if self._prompt.stream else limits.answer_s
            ) as self._scope:
                answer = await self._send(fresh=fresh)
                first = await self._first(answer)
            self._answered()
            broke = await self._relay(answer, first, caller)
        except TimeoutError as error:
            raise self._given_up or LateError("the engine did not answer in time") from error
        finally:
            if answer is not None:
                answer.close()
        self._count_cached(whole=first.whole)
        return answer.status, broke

    def _lost(self, reason: EngineError) -> None:
        """It is no use to wait any longer."""
        if self._scope is not None and not self._scope.expired():
            self._given_up = reason
            self._scope.reschedule(asyncio.get_running_loop().time())

    async def _send(self, *, fresh: bool) -> Answer:
        call = self._call
        answer = await self._tools.upstream.send(
            self._ticket.at.url,
            call.method,
            call.target,
            headers=headers.for_engine(
                call.headers, request_id=call.request_id, stream=self._prompt.stream
            ),
            body=call.body,
            fresh=fresh,
        )
        if (
            answer.status == HTTPStatus.SERVICE_UNAVAILABLE
            and answer.headers.get("x-hypic-draining") == "1"
        ):
            answer.close()
            raise DrainingError("the engine takes no new requests")
        return answer

    async def _first(self, answer: Answer) -> _First:
        """Waits until there is something to show."""
        if not _streams(answer):
            data = bytearray()
            while chunk := await answer.read():
                data += chunk
                if len(data) > WHOLE_BYTES:
                    return _First(bytes(data), None, whole=False)
            return _First(bytes(data), None, whole=True)
        if answer.headers.get("content-encoding", "identity") != "identity":
            return _First(await answer.read(), None, whole=False)
        tail = Tail()
        while chunk := await answer.read():
            ready, tail = sse.passed(tail, chunk)
            if ready:
                self._note(ready)
                return _First(ready, tail, whole=False)
        raise BrokenError("the engine ended its stream before the first event")

    def _explanation(self) -> list[tuple[str, str]]:
        if not self._call.explain:
            return []
        choice = self._ticket.choice
        words = f"{choice.label}: {choice.reason}"
        return [("x-hypic-engine", self._ticket.at.name), ("x-hypic-choice", words)]

    def _answered(self) -> None:
        now_s = time.monotonic()
        self._tools.metrics.ttft.observe(now_s - self._call.received_s)
        self._tools.store.answered(self._ticket)

    async def _relay(self, answer: Answer, first: _First, caller: Caller) -> bool:
        pairs = headers.for_client(list(answer.headers.items())) + self._explanation()
        if first.whole:
            self._note(first.data)
            data, pairs = headers.readable(answer.status, pairs, first.data)
            reply = await caller.begin(answer.status, pairs, len(data))
            await reply.write(data)
            await reply.end()
            return False
        length = None if first.tail is not None else answer.headers.get("content-length")
        reply = await caller.begin(answer.status, pairs, int(length) if length else None)
        try:
            await reply.write(first.data)
            problem = await self._pump(answer, first.tail, reply)
        except BaseException:
            reply.abort()
            raise
        if problem is None:
            await reply.end()
        elif first.tail is None:
            reply.abort()
        else:
            await reply.write(sse.error_event(problem.body))
            await reply.end()
        return problem is not None

    async def _pump(self, answer: Answer, tail: Tail | None, reply: Reply) -> EngineError | None:
        """Passes the rest on; returns what broke it off."""
        idle_s, now = self._tools.limits.idle_s, asyncio.get_running_loop().time
        observe = self._tools.metrics.inter_token.observe
        try:
            async with asyncio.timeout(idle_s) as self._scope:
                last_s = renewed_s = now()
                while chunk := await answer.read():
                    now_s = now()
                    if now_s - renewed_s > idle_s / 64:
                        self._renew(now_s + idle_s)
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
            if self._writing and self._given_up is None:
                raise ConnectionAbortedError("the client stopped reading") from None
            return self._given_up or LateError(f"the engine was silent for {idle_s:.0f} s")
        if tail is None or tail.ended:
            return None
        if tail.held.strip() == sse.DONE:
            await reply.write(tail.held)
            return None
        return BrokenError("the engine ended its stream before the end of the answer")

    def _renew(self, when_s: float) -> None:
        if self._scope is not None and self._given_up is None:
            self._scope.reschedule(when_s)

    def _note(self, data: bytes) -> None:
        """Remembers what may hold the engine's count of cached tokens."""
        if b'"cached_tokens"' in data:
            self._report = data

    def _count_cached(self, *, whole: bool) -> None:
        counts = [int(count) for count in CACHED_TOKENS.findall(self._report)]
        if counts:
            self._tools.metrics.actual.inc(sum(counts) if whole else counts[-1])
            self._tools.metrics.predicted.inc(self._ticket.choice.offer.held_tokens)


def _streams(answer: Answer) -> bool:
    return answer.headers.get("content-type", "").startswith("text/event-stream")
