"""HTTP as it is served: connections, answers, and errors below the level of a request.

With `app` and `bodies`, the only modules that know the HTTP server. Knows no route.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestHandler
from typing_extensions import override

from .call import Reply
from .core.sse import error_body
from .errors import BadRequestError
from .settings import Limits

EXPOSED = "x-request-id, x-hypic-engine, x-hypic-choice, retry-after"
METHODS = "GET, HEAD, POST, OPTIONS"
PREFLIGHT_S = "600"
SERVER = "hypic-router"
# Who stops a server has waited for its requests already; what still runs then is cut.
CUT_S = 0.5


Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class _Body(Reply):
    """An answer under way, over the server's response."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection

    @override
    async def write(self, data: bytes) -> None:
        if data:
            await self._connection.response.write(data)

    @override
    async def end(self) -> None:
        await self._connection.response.write_eof()

    @override
    def abort(self) -> None:
        transport = self._connection.request.transport
        if transport is not None:
            transport.abort()


class Connection:
    """One request and the way back to its client.

    Attributes:
        request: as the server read it.
        received_s: when its head had arrived, by the monotonic clock.
        request_id: goes out with the answer.
        closing: whether the connection ends with this answer.
        response: what was sent, once it has begun.
    """

    def __init__(self, request: web.BaseRequest, *, cors: Sequence[str]) -> None:
        self.request = request
        self.received_s = time.monotonic()
        self.request_id = ""
        self.closing = False
        self.response = web.StreamResponse()
        self.begun = False
        self._cors = cors

    def headers(self) -> list[tuple[str, str]]:
        """The request's headers.

        Raises:
            BadRequestError: a value is not text.
        """
        pairs = list(self.request.headers.items())
        if not "".join(value for _, value in pairs).isprintable():
            raise BadRequestError("a header's value is not printable text", param="headers")
        return pairs

    async def begin(
        self, status: int, headers: Sequence[tuple[str, str]], length: int | None
    ) -> Reply:
        """Starts the answer; without a length it is chunked."""
        response = web.StreamResponse(status=status)
        for name, value in headers:
            if not name.lower().startswith("access-control-"):
                response.headers.add(name, value)
        response.headers["x-request-id"] = self.request_id
        response.headers["Server"] = SERVER
        response.headers.extend(self._cors_headers())
        if length is not None:
            response.content_length = length
        elif self.request.version >= (1, 1):
            response.enable_chunked_encoding()
        if self.closing:
            response.force_close()
        self.response = response
        await response.prepare(self.request)
        self.begun = True
        return _Body(self)

    async def send_json(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None
    ) -> int:
        """A whole answer of the router's own."""
        pairs = [("Content-Type", "application/json"), *(headers or {}).items()]
        return await self._send(status, pairs, body)

    async def send_options(self, allow: str) -> int:
        """What may be done here; for a browser's preflight too, which carries no key."""
        return await self._send(204, [("Allow", allow)], b"")

    async def _send(self, status: int, headers: Sequence[tuple[str, str]], body: bytes) -> int:
        reply = await self.begin(status, headers, len(body))
        await reply.write(body)
        await reply.end()
        return status

    def _cors_headers(self) -> dict[str, str]:
        """For an origin that is allowed; engines' own are dropped, the front decides."""
        origin = self.request.headers.get("Origin")
        if origin is None or not {origin, "*"} & set(self._cors):
            return {}
        headers = {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Expose-Headers": EXPOSED,
            "Vary": "Origin",
        }
        if self.request.method == "OPTIONS":
            asked = self.request.headers.get("Access-Control-Request-Headers", "*")
            headers["Access-Control-Allow-Methods"] = METHODS
            headers["Access-Control-Allow-Headers"] = asked
            headers["Access-Control-Max-Age"] = PREFLIGHT_S
        return headers


class _Handler(RequestHandler):
    """The server's connection, with JSON for what is wrong below the level of a request."""

    __slots__ = ("_head_s", "_head_timer")

    def __init__(self, manager: web.Server, *, head_s: float, **kwargs: Any) -> None:
        super().__init__(manager, **kwargs)
        self._head_s = head_s

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._head_timer = self._loop.call_later(self._head_s, self._close_if_silent)

    @override
    def connection_lost(self, exc: BaseException | None) -> None:
        self._head_timer.cancel()
        super().connection_lost(exc)

    def _close_if_silent(self) -> None:
        """Ends a connection that never sent a whole head; kept ones end by their own timer."""
        if self._request_count == 0 and self.transport is not None:
            self.transport.close()

    @override
    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("the answer had begun")
        if isinstance(exc, LineTooLong):
            status, words = (
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                "the request line or a header is too long",
            )
        elif status < HTTPStatus.INTERNAL_SERVER_ERROR:
            words = "the request is not HTTP/1.1 that can be read"
        else:
            words = "the router failed; its log says why"
        kind = (
            "invalid_request_error" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "server_error"
        )
        body = error_body(words, kind=kind, param=None, code="bad_http")
        response = web.Response(status=status, body=body, content_type="application/json")
        response.force_close()
        return response


class Server(web.Server):
    """A server whose handlers end when their client leaves."""

    @override
    def __call__(self) -> RequestHandler:
        return _Handler(self, loop=self._loop, **self._kwargs)


async def start(
    handler: Handle, *, host: str, port: int, limits: Limits
) -> tuple[web.ServerRunner, int]:
    """Starts serving; returns the runner and the port, never 0."""
    server = Server(
        handler,
        handler_cancellation=True,
        access_log=None,
        auto_decompress=False,
        max_line_size=limits.header_bytes,
        max_field_size=limits.header_bytes,
        keepalive_timeout=75.0,
        head_s=limits.head_s,
    )
    runner = web.ServerRunner(server, shutdown_timeout=CUT_S)
    await runner.setup()
    site = web.TCPSite(runner, host, port, backlog=1024)
    await site.start()
    return runner, runner.addresses[0][1]
