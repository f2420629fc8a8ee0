"""The connections to engines: sends one request and hands back its answer as it comes.

The only module that knows the HTTP client. Does not choose, retry or judge statuses; it tells apart
the ways in which an engine can fail.
"""

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from .errors import BrokenError, StaleError, UnreachableError

Headers = Iterable[tuple[str, str]]

# Engines close idle connections after five seconds; leaving first avoids most races.
KEEP_ALIVE_S = 4.0
READ_BYTES = 1 << 16
# An engine's header may be as long as a mesh beside it makes it.
HEADER_BYTES = 1 << 16
AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


class Answer:
    """An engine's answer; close it, read to the end or not."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers = response.headers

    async def read(self) -> bytes:
        """The bytes that came since, as the engine encoded them; none at the end of the body.

        Raises:
            BrokenError: the connection ended before the body did.
        """
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise BrokenError(f"the engine broke off its answer: {_words(error)}") from error

    def close(self) -> None:
        """Gives the connection back if the answer was read to its end, else closes it.

        Closing is what tells the engine to abort.
        """
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()


class Upstream:
    """Pooled connections to all engines, and unpooled ones for second tries."""

    def __init__(self, *, connect_s: float) -> None:
        timeout = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=connect_s)
        trace = aiohttp.TraceConfig()
        trace.on_connection_reuseconn.append(_reused)
        self._pooled = _session(timeout, [trace], keep=True)
        self._fresh = _session(timeout, [], keep=False)

    async def send(
        self, method: str, url: str, *, headers: Headers, body: bytes | None, fresh: bool = False
    ) -> Answer:
        """One request, until the head of its answer is there; cancel to abort it.

        Args:
            method: HTTP method.
            url: the whole URL, percent-encoded already.
            headers: without those that belong to one connection.
            body: sent as it is.
            fresh: whether to use a connection that was never used before.

        Raises:
            UnreachableError: no connection.
            StaleError: a kept connection broke before anything came; the engine saw nothing of it.
            BrokenError: a new connection broke before anything came, or what came is not HTTP.
        """
        session = self._fresh if fresh else self._pooled
        seen: dict[str, bool] = {}
        try:
            response = await session.request(
                method,
                URL(url, encoded=True),
                headers=CIMultiDict(headers),
                data=body,
                allow_redirects=False,
                trace_request_ctx=seen,
            )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise UnreachableError(f"no connection to the engine: {_words(error)}") from error
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            if seen.get("reused"):
                raise StaleError(
                    f"the engine had closed the connection: {_words(error)}"
                ) from error
            raise BrokenError(f"the engine broke the connection: {_words(error)}") from error
        except (aiohttp.ClientError, ValueError) as error:
            raise BrokenError(f"the engine's answer is not HTTP: {_words(error)}") from error
        return Answer(response)

    async def close(self) -> None:
        """Closes every connection."""
        await asyncio.gather(self._pooled.close(), self._fresh.close())


def _session(
    timeout: aiohttp.ClientTimeout, traces: list[aiohttp.TraceConfig], *, keep: bool
) -> aiohttp.ClientSession:
    connector = (
        aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S)
        if keep
        else aiohttp.TCPConnector(limit=0, force_close=True)
    )
    return aiohttp.ClientSession(
        connector=connector,
        timeout=timeout,
        trace_configs=traces,
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=AUTOMATIC,
        auto_decompress=False,
        read_bufsize=READ_BYTES,
        max_line_size=HEADER_BYTES,
        max_field_size=HEADER_BYTES,
    )


async def _reused(
    _: aiohttp.ClientSession,
    context: SimpleNamespace,
    __: aiohttp.TraceConnectionReuseconnParams,
) -> None:
    context.trace_request_ctx["reused"] = True


def _words(error: BaseException) -> str:
    """What went wrong, without the engine's address or anything it sent."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.strerror or type(error.os_error).__name__
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
