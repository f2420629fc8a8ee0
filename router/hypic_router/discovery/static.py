"""A fixed list of engines."""

from collections.abc import AsyncIterator, Sequence
from urllib.parse import urldefrag, urlsplit

from ..core.pods import BOOTSTRAP_PORT
from ..core.workers import Address, Role


async def addresses(
    both: Sequence[str], prefill: Sequence[str] = (), decode: Sequence[str] = ()
) -> AsyncIterator[tuple[Address, ...]]:
    """The list, once; an engine's URL is its name."""
    found = [Address(url, url) for url in both]
    found += [_prefill(url) for url in prefill]
    found += [Address(url, url, role=Role.DECODE) for url in decode]
    yield tuple(dict.fromkeys(found))


def _prefill(given: str) -> Address:
    """A prefill engine, its bootstrap port after ``#`` where that is not the usual one."""
    url, port = urldefrag(given)
    bootstrap = (urlsplit(url).hostname or "", int(port or BOOTSTRAP_PORT))
    return Address(url, url, role=Role.PREFILL, bootstrap=bootstrap)
