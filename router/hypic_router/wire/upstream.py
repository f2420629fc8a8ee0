"""The connections to engines: sends one request and hands back its answer as it comes.

Does not choose, retry or judge statuses; it tells apart the ways in which an engine can fail.
"""

import asyncio
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from multidict import CIMultiDict

from ..errors import UnreachableError
from .outbound import Outbound

Headers = Iterable[tuple[str, str]]


class Answer:
    """An engine's answer; close it, read to the end or not."""

    def __init__(self, connection: Outbound, origin: "_Origin") -> None:
        self._connection = connection
        self._origin = origin
        self.status = connection.status
        self.headers: CIMultiDict[str] = connection.headers

    async def read(self) -> bytes:
        """The bytes that came since, as the engine encoded them; none at the end of the body.

        Raises:
            BrokenError: the connection ended before the body did.
        """
        return await self._connection.read()

    def close(self) -> None:
        """Keeps the connection if the answer was read to its end, else closes it.

        Closing is what tells the engine to abort.
        """
        self._origin.keep(self._connection)


@dataclass(eq=False, slots=True, weakref_slot=True)
class _Origin:
    """Where an engine listens, and the connections to it that wait for a request.

    Attributes:
        host: name or address.
        port: TCP port.
        secure: for TLS; ``None`` without it.
        prefix: what its URL has before every path.
        idle: least recently used first; values mean nothing.
    """

    host: str
    port: int
    secure: ssl.SSLContext | None
    prefix: str
    idle: dict[Outbound, None] = field(default_factory=dict)

    async def connect(self) -> Outbound:
        """A new connection."""
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: Outbound(lambda gone: self.idle.pop(gone, None)),
            self.host,
            self.port,
            ssl=self.secure,
        )
        return connection

    def keep(self, connection: Outbound) -> None:
        """Takes a connection back."""
        if connection.reusable:
            self.idle[connection] = None
            connection.rest()
        else:
            connection.close()

    def head(self, method: str, target: str, headers: Headers, n_bytes: int) -> bytes:
        """A request's head."""
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers])
        length = f"Content-Length: {n_bytes}\r\n" if n_bytes or method != "GET" else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        line = f"{method} {self.prefix}{target} HTTP/1.1\r\nHost: {host}:{self.port}\r\n"
        return f"{line}{lines}{length}\r\n".encode("latin-1")


class Upstream:
    """Connections to all engines, kept between requests."""

    def __init__(self, *, connect_s: float) -> None:
        self._connect_s = connect_s
        # An engine without connections is forgotten.
        self._origins: WeakValueDictionary[str, _Origin] = WeakValueDictionary()

    async def send(
        self,
        url: str,
        method: str,
        target: str,
        *,
        headers: Headers,
        body: bytes,
        fresh: bool = False,
    ) -> Answer:
        """One request, until the head of its answer is there; cancel to abort it.

        Args:
            url: the engine's.
            method: HTTP method.
            target: path and query, percent-encoded already.
            headers: without those that belong to one connection.
            body: sent as it is.
            fresh: whether to use a connection that was never used before.

        Raises:
            UnreachableError: no connection.
            StaleError: a kept connection broke before anything came; the engine saw nothing of it.
            BrokenError: a new connection broke before anything came, or what came is not HTTP.
        """
        origin = self._origins.get(url) or self._origins.setdefault(url, _origin(url))
        kept = not fresh and origin.idle
        connection = origin.idle.popitem()[0] if kept else await self._connected(origin)
        connection.send(origin.head(method, target, headers, len(body)), body)
        try:
            await connection.begun()
        except BaseException:
            connection.close()
            raise
        return Answer(connection, origin)

    async def _connected(self, origin: _Origin) -> Outbound:
        try:
            async with asyncio.timeout(self._connect_s):
                return await origin.connect()
        except TimeoutError as error:
            words = f"not within {self._connect_s:g} s"
            raise UnreachableError(f"no connection to the engine: {words}") from error
        except OSError as error:
            words = error.strerror or type(error).__name__
            raise UnreachableError(f"no connection to the engine: {words}") from error

    def close(self) -> None:
        """Closes every connection that waits for a request."""
        for origin in list(self._origins.values()):
            for connection in list(origin.idle):
                connection.close()


def _origin(url: str) -> _Origin:
    parts = urlsplit(url)
    secure = ssl.create_default_context() if parts.scheme == "https" else None
    return _Origin(parts.hostname or "", parts.port or (443 if secure else 80), secure, parts.path)
