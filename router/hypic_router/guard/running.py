"""Requests under way in this router, counted for its own end."""

import asyncio
from dataclasses import dataclass, field


@dataclass(slots=True)
class Running:
    """Requests under way, and whether new ones are still welcome."""

    count: int = 0
    leaving: bool = False
    idle: asyncio.Event = field(default_factory=asyncio.Event)
