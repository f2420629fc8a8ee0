"""One request as it arrives: its head, and its body piece by piece.

Does not parse; a connection feeds it.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from multidict import CIMultiDict

from ..errors import BadHttpError

# So much of a body waits in memory before anybody has asked for it.
UNASKED_BYTES = 1 << 16


class Body:
    """A request's body as it arrives."""

    def __init__(self, taken: Callable[[], None], proceed: Callable[[], None] | None) -> None:
        """Starts before the first byte.

        Args:
            taken: called when waiting bytes were taken.
            proceed: called when a client that waits for it should send them; ``None`` for others.
        """
        self._taken = taken
        self._proceed = proceed
        self._pieces: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._error: BadHttpError | None = None
        self.n_waiting = 0
        self.complete = False

    @property
    def crowded(self) -> bool:
        """Whether more has come than may wait."""
        return self.n_waiting > UNASKED_BYTES

    def feed(self, data: bytes) -> None:
        """A piece came."""
        self._pieces.append(data)
        self.n_waiting += len(data)
        self._proceed = None

    def finish(self) -> None:
        """The last piece has come."""
        self.complete = True
        self.wake()

    def fail(self, error: BadHttpError) -> None:
        """What came cannot be read."""
        self._error = error
        self.wake()

    def wake(self) -> None:
        """Lets the reader see what came."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def read(self) -> bytes:
        """What came since; none at the end.

        Raises:
            BadHttpError: what came is not HTTP.
        """
        if self._proceed is not None and not self.complete:
            self._proceed()
            self._proceed = None
        while not self._pieces and not self.complete and self._error is None:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self._error is not None:
            raise self._error
        return self.taken()

    def taken(self) -> bytes:
        """What waits, without waiting for more."""
        data = b"".join(self._pieces)
        self._pieces.clear()
        self.n_waiting = 0
        self._taken()
        return data


@dataclass(eq=False, slots=True)
class Request:
    """One request.

    Attributes:
        method: as sent.
        target: path and query, as sent.
        path: the path, percent-decoded.
        headers: as sent, in Latin-1, which keeps every byte.
        length: of the body, as announced; ``None`` when chunked.
        persistent: whether the client keeps its connection for more.
        chunks: whether the client can read a body in chunks.
        body: what follows the head.
    """

    method: str
    target: str
    path: str
    headers: CIMultiDict[str]
    length: int | None
    persistent: bool
    chunks: bool
    body: Body


def origin_form(target: str) -> str:
    """Path and query of a request target, which may be a whole URL."""
    if target.startswith("/") or target == "*":
        return target.partition("#")[0]
    try:
        parts = urlsplit(target)
    except ValueError:
        return "/"
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def decoded_path(target: str) -> str:
    """The path of a target."""
    path = target.partition("?")[0]
    return unquote(path) if "%" in path else path
