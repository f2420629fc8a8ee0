"""Work on one cluster at a time beside the looks at it, which never wait for it.

Does not know what the work is.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ..wakeups import Key

logger = logging.getLogger(__name__)


class Background:
    """At most one task for each cluster.

    Args:
        wake: called with the cluster's key when work has brought news.
    """

    def __init__(self, wake: Callable[[Key], None]) -> None:
        self._wake = wake
        self._tasks: dict[Key, asyncio.Task[None]] = {}

    def busy(self, key: Key) -> bool:
        """Whether work is under way."""
        return key in self._tasks

    def begin(self, key: Key, work: Callable[[], Awaitable[bool]]) -> None:
        """Begin work that returns whether it brought news; nothing while there is some already."""
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._do(key, work))

    def forget(self, key: Key) -> None:
        """Give up the work for a cluster that is gone."""
        task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Give up everything."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()

    async def _do(self, key: Key, work: Callable[[], Awaitable[bool]]) -> None:
        news = False
        try:
            news = await work()
        except Exception:
            logger.exception("%s/%s: a fault of the operator's", *key)
        finally:
            if self._tasks.get(key) is asyncio.current_task():
                del self._tasks[key]
        if news:
            self._wake(key)
