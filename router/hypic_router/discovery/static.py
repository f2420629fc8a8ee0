"""A fixed list of engines."""

from collections.abc import AsyncIterator, Sequence

from ..core.workers import Address


async def addresses(urls: Sequence[str]) -> AsyncIterator[tuple[Address, ...]]:
    """The list, once; an engine's URL is its name."""
    yield tuple(Address(name=url, url=url) for url in dict.fromkeys(urls))
