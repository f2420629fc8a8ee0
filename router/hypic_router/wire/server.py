"""HTTP as it is served: the answer to one request, and the port it comes in by.

Knows no route. Bytes, connections and their limits are in `wire`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from ..call import Reply
from ..errors import BadHttpError
from ..settings import Limits
from .inbound import Inbound, Serving
from .request import Request
from .response import head

EXPOSED = "x-request-id, x-hypic-engine, x-hypic-choice, retry-after"
METHODS = "GET, HEAD, POST, OPTIONS"
PREFLIGHT_S = "600"
# Who stops a server has waited for its requests already; what still runs then is cut.
CUT_S = 0.5
BACKLOG = 1024


class Connection:
    """One request and the way back to its client.

    Attributes:
        request: what was asked.
        received_s: when its head had arrived, by the monotonic clock.
        request_id: goes out with the answer.
        closing: whether the connection ends with this answer.
        cors: origins that browsers may ask from.
        begun: whether the answer has.
    """

    def __init__(self, inbound: Inbound, request: Request) -> None:
        self._inbound = inbound
        self.request = request
        self.received_s = time.monotonic()
        self.request_id = ""
        self.closing = False
        self.cors: Sequence[str] = ()
        self.begun = False

    async def begin(
        self, status: int, headers: Sequence[tuple[str, str]], length: int | None
    ) -> Reply:
        """Starts the answer; without a length it is chunked."""
        self.begun = True
        pairs = [pair for pair in headers if not pair[0].lower().startswith("access-control-")]
        if self.request_id:
            pairs.append(("x-request-id", self.request_id))
        pairs.extend(self._cors_headers())
        return self._inbound.respond(
            self.request, status, pairs, length=length, closing=self.closing
        )

    async def send(self, status: int, headers: Sequence[tuple[str, str]], body: bytes) -> int:
        """A whole answer; returns its status."""
        reply = await self.begin(status, headers, len(body))
        await reply.write(body)
        await reply.end()
        return status

    async def send_json(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None
    ) -> int:
        """A whole answer of the router's own."""
        pairs = [("Content-Type", "application/json"), *(headers or {}).items()]
        return await self.send(status, pairs, body)

    async def send_options(self, allow: str) -> int:
        """What may be done here; for a browser's preflight too, which carries no key."""
        return await self.send(204, [("Allow", allow)], b"")

    def _cors_headers(self) -> list[tuple[str, str]]:
        """For an origin that is allowed; engines' own are dropped, the front decides."""
        origin = self.request.headers.get("Origin")
        if origin is None or not {origin, "*"} & set(self.cors):
            return []
        headers = [
            ("Access-Control-Allow-Origin", origin),
            ("Access-Control-Expose-Headers", EXPOSED),
            ("Vary", "Origin"),
        ]
        if self.request.method == "OPTIONS":
            asked = self.request.headers.get("Access-Control-Request-Headers", "*")
            headers.append(("Access-Control-Allow-Methods", METHODS))
            headers.append(("Access-Control-Allow-Headers", asked))
            headers.append(("Access-Control-Max-Age", PREFLIGHT_S))
        return headers


Handle = Callable[[Connection], Awaitable[None]]


@dataclass(slots=True)
class Listening:
    """A port that is served.

    Attributes:
        port: never 0.
    """

    port: int
    _server: asyncio.Server
    _serving: Serving

    async def close(self) -> None:
        """Takes no new connection and ends those there are; a busy one has `CUT_S` left."""
        self._server.close()
        busy = [one.task for one in self._serving.open if one.task is not None]
        if busy:
            await asyncio.wait(busy, timeout=CUT_S)
        for one in list(self._serving.open):
            one.close()


async def listen(handle: Handle, *, host: str, port: int, limits: Limits) -> Listening:
    """Starts serving."""

    async def answer(inbound: Inbound, request: Request) -> None:
        await handle(Connection(inbound, request))

    serving = Serving(
        answer,
        _refusal,
        head_bytes=limits.header_bytes,
        head_s=limits.head_s,
        read_s=limits.idle_s,
    )
    server = await asyncio.get_running_loop().create_server(
        lambda: Inbound(serving), host, port, backlog=BACKLOG
    )
    return Listening(server.sockets[0].getsockname()[1], server, serving)


def _refusal(error: BadHttpError) -> bytes:
    """The answer to what is no request."""
    kept = ("Content-Length", str(len(error.body))), ("Connection", "close")
    return head(error.status, [("Content-Type", "application/json"), *kept]) + error.body
