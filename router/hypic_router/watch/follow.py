"""Follows one engine's cache events, and reads its snapshot when some were missed.

What a line means is decided in `core.residency`; this only carries lines there.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from http import HTTPStatus

import aiohttp

from hypic_engine.contract.events import FORGET_AFTER_S, Line, decode, decode_page
from hypic_engine.errors import ContractError

from ..core.caches.residency import NOTHING, Residency, after, with_page
from ..core.workers import Address
from ..fleet import FleetStore
from ..metrics import Metrics

ABSENT_PAUSE_S = 10.0
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0
LONGEST_LINE_BYTES = 1 << 20

log = logging.getLogger(__name__)


class _AbsentError(Exception):
    """The engine has no such routes: it holds nothing that we could know of."""


class Follower:
    """What one engine holds, kept up to date."""

    def __init__(
        self, session: aiohttp.ClientSession, at: Address, store: FleetStore, metrics: Metrics
    ) -> None:
        self._session = session
        self._at = at
        self._store = store
        self._metrics = metrics
        self._residency = NOTHING
        self._heard_s = time.monotonic()

    async def run(self) -> None:
        """Follows until cancelled."""
        pause_s = FIRST_PAUSE_S
        while True:
            began_s = time.monotonic()
            try:
                await self._follow()
            except _AbsentError:
                self._know(NOTHING)
                pause_s = ABSENT_PAUSE_S
            except (aiohttp.ClientError, OSError, TimeoutError, ContractError) as error:
                log.debug(
                    "Lost an engine's events",
                    extra={"engine": self._at.name, "detail": f"{type(error).__name__}: {error}"},
                )
            if time.monotonic() - self._heard_s > FORGET_AFTER_S:
                self._know(NOTHING)
            if time.monotonic() - began_s > LONGEST_PAUSE_S:
                pause_s = FIRST_PAUSE_S
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    def _know(self, residency: Residency) -> None:
        if residency is not self._residency:
            self._residency = residency
            self._store.holds(self._at, residency)

    async def _follow(self) -> None:
        """One snapshot if one is needed, then events until the stream ends or one is missed."""
        if self._residency.stale:
            self._know(await self._snapshot())
        query = {"epoch": self._residency.epoch, "after": str(self._residency.seq)}
        async for lines in self._lines(query):
            self._heard_s = time.monotonic()
            self._know(after(self._residency, lines))
            if self._residency.stale:
                return

    async def _get(self, path: str, query: dict[str, str]) -> aiohttp.ClientResponse:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=2.0, sock_read=FORGET_AFTER_S)
        response = await self._session.get(self._at.url + path, params=query, timeout=timeout)
        if response.status == HTTPStatus.OK:
            return response
        response.release()
        if response.status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
            raise _AbsentError
        raise ContractError(f"{path} answered {response.status}")

    async def _lines(self, query: dict[str, str]) -> AsyncIterator[list[Line]]:
        """Lines as they come, those of one piece together."""
        response = await self._get("/pic/events", query)
        try:
            rest = b""
            while chunk := await response.content.readany():
                *whole, rest = (rest + chunk).split(b"\n")
                if len(rest) > LONGEST_LINE_BYTES:
                    raise ContractError("a line has no end")
                if lines := [decode(line) for line in whole if line]:
                    yield lines
        finally:
            response.close()

    async def _snapshot(self) -> Residency:
        self._metrics.resyncs.inc()
        building, cursor = NOTHING, ""
        while True:
            response = await self._get("/pic/segments", {"cursor": cursor})
            async with response:
                page = decode_page(await response.read())
            self._heard_s = time.monotonic()
            building = with_page(building, page)
            if building.stale:
                raise ContractError("the engine began another epoch while its snapshot was read")
            if page.next is None:
                return building
            cursor = page.next
