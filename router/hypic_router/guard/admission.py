"""Lets requests to the engines: at once, from a queue while all are busy, later while all sleep.

Counts what it let through and asks the fleet who could take more; does not choose.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from ..core.choose import candidates, nobody
from ..core.workers import ASKABLE
from ..errors import ClosingError
from ..fleet import FleetStore
from ..settings import Admitting
from .refusals import AsleepError, BusyError, HeldEnoughError, WaitedError
from .waiting import HEARTBEAT_S, Waiting

Future = asyncio.Future[None]


@dataclass(slots=True)
class Admission:
    """Requests at engines and before them.

    Attributes:
        store: tells which engines there are, and when that changes.
        limits: how many, and how long.
        running: let through and not ended.
    """

    store: FleetStore
    limits: Admitting
    running: int = 0
    _queue: deque[Future] = field(default_factory=deque)
    _held: set[Future] = field(default_factory=set)

    @property
    def queued(self) -> int:
        """Requests that wait for an engine with room."""
        return len(self._queue)

    @property
    def held(self) -> int:
        """Requests that wait for an engine to wake."""
        return len(self._held)

    @property
    def asleep(self) -> bool:
        """Whether requests are held now."""
        return self.limits.hold_s > 0 and not self._able()

    def _able(self) -> bool:
        return bool(candidates(self.store.snapshot, (), time.monotonic()))

    def _room(self) -> int:
        """How many more may be let through; without an engine they are, and hear why not."""
        engines = sum(worker.state in ASKABLE for worker in self.store.snapshot.workers)
        return max(engines, 1) * self.limits.requests_per_engine - self.running

    def wake(self) -> None:
        """Lets through who waited for what has changed."""
        if self._held and not self.asleep:
            for one in self._held:
                _let(one)
        if self._queue:
            room = self._room()
            while room > 0 and self._queue:
                one = self._queue.popleft()
                if not one.done():
                    self.running += 1
                    room -= 1
                    one.set_result(None)

    def abandon(self) -> None:
        """The router ends: who waits is told."""
        for one in (*self._held, *self._queue):
            if not one.done():
                one.set_exception(ClosingError("the router was stopped before its turn came"))
        self._queue.clear()

    async def engine(self, caller: Waiting) -> None:
        """Returns once there is an engine to ask, or at once where requests are not held.

        Raises:
            HeldEnoughError: as many are held as may be.
            AsleepError: none woke in time.
        """
        if not self.asleep:
            return
        if self.held >= self.limits.most_held:
            raise HeldEnoughError("the engines sleep and enough requests wait for them already")
        waking: Future = asyncio.get_running_loop().create_future()
        self._held.add(waking)
        try:
            if not await _heard(waking, caller, caller.since_s + self.limits.hold_s):
                words = nobody(self.store.snapshot, ())
                raise AsleepError(f"no engine woke within {self.limits.hold_s:g} s: {words}")
        finally:
            self._held.discard(waking)

    @contextlib.asynccontextmanager
    async def slot(self, caller: Waiting) -> AsyncIterator[None]:
        """One request's place at the engines.

        Raises:
            BusyError: as many wait as may.
            WaitedError: none had room in time.
        """
        if self._queue or self._room() <= 0:
            await self._turn(caller)
        else:
            self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self.wake()

    async def _turn(self, caller: Waiting) -> None:
        """Waits until this request is let through."""
        if self.queued >= self.limits.most_queued:
            raise BusyError("every engine has as much to do as it may, and so has the queue")
        turn: Future = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        let = False
        try:
            let = await _heard(turn, caller, time.monotonic() + self.limits.queue_s)
        finally:
            if not let and turn.done() and turn.exception() is None:
                self.running -= 1
                self.wake()
            elif turn in self._queue:
                self._queue.remove(turn)
        if not let:
            raise WaitedError(f"no engine had room within {self.limits.queue_s:g} s")


def _let(waiting: Future) -> None:
    if not waiting.done():
        waiting.set_result(None)


async def _heard(waiting: Future, caller: Waiting, until_s: float) -> bool:
    """Whether it came before the moment; tells the caller again and again that it waits.

    Raises:
        ClosingError: the router ends.
    """
    while (left_s := until_s - time.monotonic()) > 0:
        await asyncio.wait((waiting,), timeout=min(left_s, HEARTBEAT_S))
        if waiting.done():
            break
        if left_s > HEARTBEAT_S:
            await caller.beat()
    if waiting.done():
        waiting.result()
    return waiting.done()
