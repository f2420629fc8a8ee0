"""Asks one engine again and again whether it can serve, and tells the fleet.

Does not judge answers to clients' requests; the breaker does.
"""

import asyncio
import json
from dataclasses import dataclass
from http import HTTPStatus

import aiohttp

from ..core.workers import Address, Health, State
from ..fleet import FleetStore
from ..settings import Probing

READY_PATH = "/pic/ready"
# Stock engines have no cheap readiness route: this one may generate a token, so it is asked rarely.
STOCK_PATH = "/health"
STOCK_EVERY_S = 2.0
STOCK_TIMEOUT_S = 5.0
WORDS = 300


@dataclass(slots=True)
class _Asked:
    """What one engine is asked, and how often in a row it did not answer."""

    path: str = READY_PATH
    silent: int = 0


async def probe(
    session: aiohttp.ClientSession, at: Address, store: FleetStore, probing: Probing
) -> None:
    """Probes until cancelled."""
    asked = _Asked()
    while True:
        health = await _health(session, at, asked, probing)
        if health is not None:
            store.probed(at, health)
        if asked.silent >= probing.lost_after:
            store.lost(at)
        stock = asked.path == STOCK_PATH
        await asyncio.sleep(STOCK_EVERY_S if stock else probing.every_s)


async def _health(
    session: aiohttp.ClientSession, at: Address, asked: _Asked, probing: Probing
) -> Health | None:
    """What the engine says; ``None`` when one late answer is no reason to change one's mind."""
    stock = asked.path == STOCK_PATH
    limit_s = STOCK_TIMEOUT_S if stock else probing.timeout_s
    try:
        async with asyncio.timeout(limit_s), session.get(at.url + asked.path) as response:
            text = await response.text(errors="replace")
            status = response.status
    except TimeoutError:
        asked.silent += 1
        words = f"{asked.path} did not answer within {limit_s:g} s"
        return Health(State.LATE, words) if asked.silent >= probing.failures else None
    except (aiohttp.ClientError, OSError) as error:
        asked.silent += 1
        return Health(State.UNREADY, f"{asked.path}: {type(error).__name__}")
    asked.silent = 0
    if status == HTTPStatus.NOT_FOUND and not stock:
        asked.path = STOCK_PATH
        return await _health(session, at, asked, probing)
    if status == HTTPStatus.OK:
        return Health(State.READY, "")
    if stock:
        asked.path = READY_PATH
    return Health(State.UNREADY, f"{asked.path} answered {status}: {_reason(text)}")


def _reason(text: str) -> str:
    """The engine's own words, from JSON where it is."""
    try:
        fields = json.loads(text)
    except ValueError:
        fields = None
    if isinstance(fields, dict) and isinstance(fields.get("reason"), str):
        text = fields["reason"]
    return text[:WORDS]
