"""One answer on its way to a client: framing and back-pressure.

Does not know what is answered, nor what follows on the connection.
"""

import asyncio
import time
from collections.abc import Sequence
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus

from typing_extensions import override

from ..call import Reply
from .flow import Flow
from .request import Request

SERVER = "hypic-router"
LAST_CHUNK = b"0\r\n\r\n"

Pairs = Sequence[tuple[str, str]]


class Response(Reply):
    """One answer; its head travels with the first piece of its body."""

    def __init__(
        self,
        transport: asyncio.Transport,
        flow: Flow,
        request: Request,
        status: int,
        headers: Pairs,
        *,
        length: int | None,
        closing: bool,
    ) -> None:
        """Begins an answer.

        Args:
            transport: where to.
            flow: whether there is room.
            request: what is answered.
            status: HTTP status.
            headers: without those that belong to the connection.
            length: of the body; ``None`` for one that ends by itself.
            closing: whether the connection ends with it.
        """
        self._transport = transport
        self._flow = flow
        empty = status in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
        self._chunked = length is None and request.chunks and not empty
        self._body = not empty and request.method != "HEAD"
        pairs = [*headers]
        if self._chunked:
            pairs.append(("Transfer-Encoding", "chunked"))
        elif length is not None and not empty:
            pairs.append(("Content-Length", str(length)))
        if closing:
            pairs.append(("Connection", "close"))
        self._head = head(status, pairs)
        self.ended = False

    @override
    async def write(self, data: bytes) -> None:
        if data and self._body:
            self._send(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)
            await self._flow.room()

    @override
    async def end(self) -> None:
        self._send(LAST_CHUNK if self._chunked and self._body else b"")
        self.ended = True

    def _send(self, data: bytes) -> None:
        if self._head:
            data, self._head = self._head + data, b""
        if data:
            self._transport.write(data)

    @override
    def abort(self) -> None:
        self._transport.abort()


def head(status: int, headers: Pairs) -> bytes:
    """An answer's head; characters that no header can hold become question marks."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers])
    ours = f"Date: {_date(int(time.time()))}\r\nServer: {SERVER}\r\n\r\n"
    return f"{_status_line(status)}{lines}{ours}".encode("latin-1", "replace")


@lru_cache
def _status_line(status: int) -> str:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status} {phrase}\r\n"


@lru_cache(maxsize=1)
def _date(now_s: int) -> str:
    return formatdate(now_s, usegmt=True)
