"""Fake prefill and decode engines that meet in rooms, as SGLang's do."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from .fake_engine import Turn, answers, plain


@dataclass(eq=False)
class Rooms:
    """Where the two halves of each request meet.

    Attributes:
        prefilled: rooms whose prompt has arrived.
        uses: how often each room was entered, by engine and room.
        left: engines whose request was given up by the router.
    """

    prefilled: dict[int, asyncio.Event] = field(default_factory=dict)
    uses: Counter[tuple[int, int]] = field(default_factory=Counter)
    left: list[int] = field(default_factory=list)

    def _enter(self, turn: Turn) -> asyncio.Event:
        room = turn.request.json()["bootstrap_room"]
        self.uses[turn.engine.port, room] += 1
        return self.prefilled.setdefault(room, asyncio.Event())

    async def prefill(self, turn: Turn) -> None:
        """Does the prompt and hands it over; its own answer is one token that nobody needs."""
        self._enter(turn).set()
        await turn.send(plain(200, {"text": "x", "choices": []}))

    async def decode(self, turn: Turn) -> bool | None:
        """Waits for the prompt, for ever if need be, then answers."""
        arrived = asyncio.ensure_future(self._enter(turn).wait())
        leaving = asyncio.ensure_future(turn.left())
        await asyncio.wait({arrived, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not arrived.done():
            arrived.cancel()
            self.left.append(turn.engine.port)
            return True
        leaving.cancel()
        return await answers(turn)

    async def held(self, turn: Turn) -> bool:
        """Enters and says nothing until the router gives up."""
        self._enter(turn)
        await turn.left()
        self.left.append(turn.engine.port)
        return True
