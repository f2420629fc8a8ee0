"""Makes the fleet what discovery says, with one watch for each engine in it."""

import asyncio
import logging
from collections.abc import AsyncIterator

import aiohttp

from ..core.workers import Address
from ..fleet import FleetStore
from ..metrics import Metrics
from ..settings import Probing
from .follow import Follower
from .probe import probe

log = logging.getLogger(__name__)


class Supervisor:
    """Starts and ends watches."""

    def __init__(self, store: FleetStore, metrics: Metrics, probing: Probing) -> None:
        self._store = store
        self._metrics = metrics
        self._probing = probing
        self._watches: dict[str, list[asyncio.Task[None]]] = {}

    async def run(self, discovered: AsyncIterator[tuple[Address, ...]]) -> None:
        """Watches what ``discovered`` yields, each time the whole set, until cancelled."""
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            try:
                async for found in discovered:
                    self._see(session, found)
                await asyncio.Event().wait()
            finally:
                await self._end(list(self._watches))

    def _see(self, session: aiohttp.ClientSession, found: tuple[Address, ...]) -> None:
        came, gone = self._store.discovered(found)
        for at in gone:
            log.info("Engine left", extra={"engine": at.name})
            for task in self._watches.pop(at.name):
                task.cancel()
        for at in came:
            log.info("Engine found", extra={"engine": at.name, "url": at.url})
            follower = Follower(session, at, self._store, self._metrics)
            self._watches[at.name] = [
                asyncio.create_task(probe(session, at, self._store, self._probing)),
                asyncio.create_task(follower.run()),
            ]

    async def _end(self, names: list[str]) -> None:
        tasks = [task for name in names for task in self._watches.pop(name)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
