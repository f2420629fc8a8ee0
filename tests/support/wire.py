"""HTTP/1.1 by hand over real sockets, for tests that look at the very bytes."""

import asyncio
import json
import socket
import struct
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

DEADLINE_S = 20.0


async def eventually(condition, *, within_s: float = DEADLINE_S, what: str = ""):
    """Waits until ``condition()`` is true and returns its value; fails at the deadline."""
    end = time.monotonic() + within_s
    while True:
        value = condition()
        if asyncio.iscoroutine(value):
            value = await value
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {within_s} s: {what or condition}")
        await asyncio.sleep(0.01)


def reset(writer: asyncio.StreamWriter) -> None:
    """Drops a connection as a killed process does: with a reset."""
    sock = writer.transport.get_extra_info("socket")
    if sock is not None and sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@dataclass
class Request:
    """One request as it came over the wire."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.split("?")[0]

    def json(self) -> Any:
        return json.loads(self.body)


async def read_request(reader: asyncio.StreamReader) -> Request:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin1").split("\r\n")
    method, target, _ = lines[0].split(" ", 2)
    pairs = (line.partition(":") for line in lines[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, target, headers, body)


@dataclass
class Reply:
    """What came back: status, headers as sent, body, and whether it ended as HTTP says."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""
    clean: bool = False
    seconds: float = 0.0

    def header(self, name: str) -> str | None:
        return next((v for k, v in self.headers if k.lower() == name.lower()), None)

    def json(self) -> Any:
        return json.loads(self.body)

    def events(self) -> list[bytes]:
        return [
            block.removeprefix(b"data: ") for block in self.body.split(b"\n\n") if block.strip()
        ]


@dataclass
class Call:
    """One HTTP exchange over a socket of its own, read as it comes."""

    url: str
    path: str
    body: Any = None
    method: str = "POST"
    headers: Sequence[str] = ()
    raw: bytes | None = None
    reply: Reply = field(default_factory=lambda: Reply(0, []))

    async def __aenter__(self) -> Self:
        host, port = self.url.removeprefix("http://").split(":")
        self.reader, self.writer = await asyncio.open_connection(host, int(port), limit=1 << 18)
        body = self.raw
        if body is None:
            body = b"" if self.body is None else json.dumps(self.body).encode()
        head = [
            f"{self.method} {self.path} HTTP/1.1",
            f"Host: {host}:{port}",
            "Content-Type: application/json",
            *(
                []
                if any(h.startswith("Transfer") for h in self.headers)
                else [f"Content-Length: {len(body)}"]
            ),
            *self.headers,
        ]
        self.began_s = time.monotonic()
        self.writer.write(("\r\n".join(head) + "\r\n\r\n").encode() + body)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def head(self) -> Reply:
        raw = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), DEADLINE_S)
        lines = raw.decode("latin1").split("\r\n")
        pairs = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:] if line]
        self.reply = Reply(int(lines[0].split()[1]), pairs)
        return self.reply

    async def pieces(self) -> AsyncIterator[bytes]:
        reply = self.reply
        try:
            if "chunked" in (reply.header("transfer-encoding") or ""):
                while size := int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16):
                    yield await self.reader.readexactly(size)
                    await self.reader.readexactly(2)
                await self.reader.readexactly(2)
            elif self.method != "HEAD" and reply.status != 204:
                yield await self.reader.readexactly(int(reply.header("content-length") or 0))
            reply.clean = True
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            yield getattr(error, "partial", b"")

    async def all(self) -> Reply:
        reply = await self.head()
        async with asyncio.timeout(DEADLINE_S):
            async for piece in self.pieces():
                reply.body += piece
        reply.seconds = time.monotonic() - self.began_s
        return reply

    def drop(self) -> None:
        """Leaves as a killed client does."""
        reset(self.writer)


async def ask(url: str, path: str, body: Any = None, **more: Any) -> Reply:
    """One exchange from beginning to end."""
    async with Call(url, path, body, **more) as call:
        return await call.all()
