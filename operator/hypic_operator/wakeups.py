"""One task a HypicCluster: every cause wakes it, causes that come together are one, and it repeats.

Does not know what is done when it wakes, nor why.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from .errors import OperatorError, UnavailableError

logger = logging.getLogger(__name__)

# One is worked on while the other waits for answers: more at once only last longer each.
AT_ONCE = 2
GATHER_S = 0.05
LAST_RETRY_S = 60.0
_DOUBLED = 10


class Key(NamedTuple):
    """Which HypicCluster."""

    namespace: str
    name: str


# Seconds until it should be looked at again without a cause; None when it is gone.
Reconcile = Callable[[Key], Awaitable[float | None]]


class Wakeups:
    """Calls one function for each key, never twice at once for the same, again after a failure.

    Args:
        at_once: how many keys are worked on at the same time.
        first_retry_s: how long is waited after a first failure; twice as long after each more.
        waited: told for each call how many seconds it came after it was due.
    """

    def __init__(
        self,
        *,
        at_once: int = AT_ONCE,
        first_retry_s: float = 0.5,
        waited: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._waited = waited
        self._first_retry_s = first_retry_s
        self._reconcile: Reconcile = _nothing
        self._slots = asyncio.Semaphore(at_once)
        self._causes: dict[Key, asyncio.Event] = {}
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._ended = False

    def start(self, reconcile: Reconcile) -> None:
        """Say what is called; before that nothing is."""
        self._reconcile = reconcile

    def wake(self, key: Key) -> None:
        """Have the key looked at soon."""
        if self._ended:
            return
        if key not in self._tasks:
            self._causes[key] = asyncio.Event()
            self._tasks[key] = asyncio.create_task(self._follow(key), name=f"follow {key}")
        self._causes[key].set()

    async def close(self) -> None:
        """Stop following everything; what was being written is left half done, which is safe."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def end(self) -> None:
        """Stop following everything, and follow nothing any more."""
        self._ended = True
        await self.close()

    async def _follow(self, key: Key) -> None:
        cause, failures = self._causes[key], 0
        wait_s: float | None = 0.0
        try:
            while wait_s is not None or cause.is_set():
                await _either(cause, wait_s or 0.0)
                due_s = time.monotonic()
                await asyncio.sleep(GATHER_S)
                cause.clear()
                try:
                    async with self._slots:
                        self._waited(time.monotonic() - due_s)
                        wait_s, failures = await self._reconcile(key), 0
                except Exception as error:  # noqa: BLE001  one bad object must not stop the others
                    alone_s, retry_s = _left_alone_s(error), self._first_retry_s * 2.0**failures
                    wait_s = max(0.0, min(LAST_RETRY_S, retry_s) - alone_s)
                    failures = min(failures + 1, _DOUBLED)
                    _tell(key, error, alone_s + wait_s)
                    await asyncio.sleep(alone_s)
        finally:
            del self._tasks[key], self._causes[key]


def _left_alone_s(error: Exception) -> float:
    """How long the API server wants to be left alone, whatever the cause."""
    return min(LAST_RETRY_S, error.retry_after_s) if isinstance(error, UnavailableError) else 0.0


async def _nothing(_key: Key) -> float | None:
    return None


def _tell(key: Key, error: Exception, wait_s: float) -> None:
    words = "Looking at HypicCluster %s/%s failed, again in %.1f s: %s"
    unexpected = not isinstance(error, OperatorError)
    logger.warning(words, *key, wait_s, error, exc_info=error if unexpected else None)


async def _either(cause: asyncio.Event, wait_s: float) -> None:
    try:
        async with asyncio.timeout(wait_s):
            await cause.wait()
    except TimeoutError:
        return
