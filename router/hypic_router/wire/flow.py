"""What both kinds of connections need: waiting for room to write, and a deadline that may move.

Knows nothing of HTTP.
"""

import asyncio
from collections.abc import Callable

NEVER_S = float("inf")


class Flow:
    """Whether a transport has room, as it tells by ``pause_writing`` and ``resume_writing``."""

    def __init__(self, *, patience_s: float) -> None:
        """Starts with room.

        Args:
            patience_s: longest wait for some.
        """
        self._patience_s = patience_s
        self._full = False
        self._lost = False
        self._waiter: asyncio.Future[None] | None = None

    def pause(self) -> None:
        """The transport's buffer is full."""
        self._full = True

    def resume(self) -> None:
        """It has room again."""
        self._full = False
        self._wake()

    def lose(self) -> None:
        """The connection is gone, and nobody waits any longer."""
        self._lost = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def room(self) -> None:
        """Waits until there is room; one waiter at a time.

        Raises:
            ConnectionResetError: the connection is gone.
            ConnectionAbortedError: the other side did not read in time.
        """
        if self._full and not self._lost:
            await self._emptied()
        if self._lost:
            raise ConnectionResetError("the connection is gone")

    async def _emptied(self) -> None:
        try:
            async with asyncio.timeout(self._patience_s):
                while self._full and not self._lost:
                    self._waiter = asyncio.get_running_loop().create_future()
                    await self._waiter
        except TimeoutError:
            raise ConnectionAbortedError("the other side stopped reading") from None


class Alarm:
    """Calls once a deadline has passed; moving the deadline later costs next to nothing.

    The timer underneath is left running and looks at the deadline when it fires.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._ring = ring
        self._due_s = NEVER_S
        self._armed_s = NEVER_S
        self._timer: asyncio.TimerHandle | None = None

    def set_in(self, seconds: float) -> None:
        """Rings so many seconds from now, and at no other time."""
        self._due_s = self._loop.time() + seconds
        if self._due_s < self._armed_s:
            self._arm()

    def off(self) -> None:
        """Does not ring."""
        self._due_s = NEVER_S

    def end(self) -> None:
        """Does not ring any more, and lets go of its owner."""
        self.off()
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._armed_s = self._due_s
        self._timer = self._loop.call_at(self._due_s, self._fired)

    def _fired(self) -> None:
        self._timer, self._armed_s = None, NEVER_S
        if self._due_s <= self._loop.time():
            self._due_s = NEVER_S
            self._ring()
        elif self._due_s < NEVER_S:
            self._arm()
