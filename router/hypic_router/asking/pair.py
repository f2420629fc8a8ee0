"""One request at a pair: prefill and decode are asked at once; decode's answer is the answer.

What one engine does is in `exchange`. The pair fails as one: whichever leg fails or refuses first
ends the other, as long as nothing has reached the client; afterwards decode is on its own.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus

from typing_extensions import override

from ..call import Call, Caller, Reply
from ..core import pairs
from ..core.choose import Choice
from ..core.prompt import Prompt
from ..errors import PairError
from .exchange import Exchange
from .relay import Told, Tools

# Nobody needs more of what a prefill engine says.
KEPT_BYTES = 1 << 20


@dataclass(slots=True)
class _Kept(Caller, Reply):
    """A leg's answer that is kept here instead of being sent."""

    status: int = 0
    headers: Sequence[tuple[str, str]] = ()
    data: bytearray = field(default_factory=bytearray)

    @override
    async def begin(
        self, status: int, headers: Sequence[tuple[str, str]], length: int | None
    ) -> Reply:
        self.status, self.headers = status, headers
        return self

    @override
    async def write(self, data: bytes) -> None:
        if len(self.data) < KEPT_BYTES:
            self.data += data

    @override
    async def end(self) -> None:
        pass

    @override
    def abort(self) -> None:
        pass


@dataclass(slots=True)
class _Watched(Caller):
    """The client, and whether it has been answered anything."""

    caller: Caller
    begun: bool = False

    @override
    async def begin(
        self, status: int, headers: Sequence[tuple[str, str]], length: int | None
    ) -> Reply:
        self.begun = True
        return await self.caller.begin(status, headers, length)


class Pair:
    """One request at a prefill and a decode engine of one revision."""

    def __init__(self, tools: Tools, prefill: Choice, decode: Choice, call: Call) -> None:
        """Counts the request at both, in the same step as they were chosen.

        Raises:
            RequestError: the body cannot be given a room.
        """
        room = random.randrange(pairs.ROOMS)  # noqa: S311 - nobody gains by guessing it
        body = pairs.with_room(call.body, prefill.worker.at, room)
        self._call = replace(call, body=body)
        self._tools = tools
        self._told = Told(pairs.name(prefill.worker.at.name, decode.worker.at.name), prefill)
        prompt_only = replace(prefill, size=replace(prefill.size, output=0.0))
        self._prefill = tools.store.dispatched(prompt_only)
        self._decode = tools.store.dispatched(decode)

    async def run(self, prompt: Prompt, caller: Caller, *, fresh: bool) -> int:
        """The status that was sent.

        Raises:
            EngineError: the pair failed before anything reached the client.
        """
        leg = Exchange(self._tools, self._decode, self._call, prompt, self._told, fresh)
        aside = replace(leg, ticket=self._prefill, told=replace(self._told, counted=False))
        kept, watched = _Kept(), _Watched(caller)
        limit: asyncio.TimerHandle | None = None
        prefill = asyncio.create_task(aside.ask(kept))
        decode = asyncio.create_task(leg.ask(watched))
        try:
            await asyncio.wait((prefill, decode), return_when=asyncio.FIRST_COMPLETED)
            if decode.done() or watched.begun:
                return await decode
            prefill.result()
            if kept.status >= HTTPStatus.BAD_REQUEST:
                return await _answered(kept, caller)
            if prompt.stream:
                limit = self._expect(watched)
            return await decode
        except PairError as error:
            error.at = (self._prefill.at.name, self._decode.at.name)
            raise
        finally:
            if limit is not None:
                limit.cancel()
            await _ended(prefill, decode)

    def _expect(self, watched: _Watched) -> asyncio.TimerHandle:
        """The prompt has arrived at decode: its stream begins soon, or the transfer has failed."""
        limit_s = self._tools.limits.transfer_s

        def give_up() -> None:
            if not watched.begun and self._decode.on_lost is not None:
                words = f"decode said nothing within {limit_s:g} s after prefill had ended"
                self._decode.on_lost(PairError(words))

        return asyncio.get_running_loop().call_later(limit_s, give_up)


async def _answered(kept: _Kept, caller: Caller) -> int:
    """Sends what was kept."""
    reply = await caller.begin(kept.status, kept.headers, len(kept.data))
    await reply.write(bytes(kept.data))
    await reply.end()
    return kept.status


async def _ended(*legs: asyncio.Task[int]) -> None:
    """Ends what still runs, which closes its connection."""
    for leg in legs:
        leg.cancel()
    await asyncio.gather(*legs, return_exceptions=True)
