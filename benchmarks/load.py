"""A fake engine and a load generator, cheap enough to share a core; for the router's benchmarks.

python benchmarks/load.py --port 17180       # be the fake engine
"""

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import uvloop

SEP = "<<PIC_SEP>>"
CHUNKS_A_STREAM = 500
PLAIN = json.dumps({"text": "ok", "meta_info": {"cached_tokens": 0}}).encode()
PLAIN_ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(PLAIN)
) + PLAIN
NOT_HERE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
INFO = json.dumps({"model_path": "m", "served_model_name": "m", "is_generation": True}).encode()
HEALTHY = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(INFO)
) + INFO
SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
EVENT = b"data: " + json.dumps({"text": "token", "index": 0}).encode() + b"\n\n"
EVENT_CHUNK = b"%x\r\n%s\r\n" % (len(EVENT), EVENT)
END = b"0\r\n\r\n"
DONE = b"data: [DONE]\n\n"
LAST_CHUNKS = b"%x\r\n%s\r\n" % (len(DONE), DONE) + END
SMALL = {"text": "Say hello."}
STREAM = {"text": "x", "stream": True}


class Engine(asyncio.Protocol):
    """Answers from constants; reads no more of a request than it must."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.buffer = transport, b""
        self.room = asyncio.Event()
        self.room.set()

    def pause_writing(self) -> None:
        self.room.clear()

    def resume_writing(self) -> None:
        self.room.set()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            at = head.find(b"content-length:")
            size = int(head[at + 15 :].split(b"\r", 1)[0]) if at >= 0 else 0
            if len(self.buffer) < end + 4 + size:
                return
            body, self.buffer = self.buffer[end + 4 : end + 4 + size], self.buffer[end + 4 + size :]
            if head.startswith(b"get"):
                pic = head.startswith(b"get /pic")
                self.transport.write(NOT_HERE if pic else HEALTHY)
            elif b'"stream": true' in body or b'"stream":true' in body:
                self.task = asyncio.ensure_future(self.stream())
            else:
                self.transport.write(PLAIN_ANSWER)

    async def stream(self) -> None:
        self.transport.write(SSE_HEAD)
        for _ in range(CHUNKS_A_STREAM):
            self.transport.write(EVENT_CHUNK)
            await asyncio.sleep(0)
            await self.room.wait()
        self.transport.write(LAST_CHUNKS)


async def serve_engine(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Engine, "127.0.0.1", port)
    await server.serve_forever()


class Client(asyncio.Protocol):
    """One connection that asks again as soon as it is answered."""

    def __init__(self, request: bytes, ended: Callable[[bytes], bool]) -> None:
        self.request, self.ended = request, ended
        self.done: asyncio.Future[float] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.tail = transport, b""

    def connection_lost(self, exc: Exception | None) -> None:
        if self.done is not None and not self.done.done():
            self.done.set_exception(exc or ConnectionResetError("closed without an answer"))

    def ask(self) -> "asyncio.Future[float]":
        self.done = asyncio.get_running_loop().create_future()
        self.began_s, self.tail = time.perf_counter(), b""
        self.transport.write(self.request)
        return self.done

    def data_received(self, data: bytes) -> None:
        self.tail = (self.tail + data)[-400:]
        if self.ended(self.tail) and self.done is not None and not self.done.done():
            self.done.set_result(time.perf_counter() - self.began_s)


def request(port: int, body: dict[str, object]) -> bytes:
    raw = json.dumps(body).encode()
    head = f"POST /generate HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {len(raw)}\r\n"
    return head.encode() + b"Content-Type: application/json\r\n\r\n" + raw


def prompt(size: int) -> str:
    piece = "The berth master writes down each hull and its draught. " * (size // 8 // 56)
    return SEP.join([f"{i} {piece}" for i in range(8)])


async def clients(port: int, count: int, body: dict[str, object], ended: bytes) -> list[Client]:
    """Connections whose answers end with ``ended``, whoever frames them."""
    loop, raw = asyncio.get_running_loop(), request(port, body)
    made = []
    for _ in range(count):
        _, client = await loop.create_connection(
            lambda: Client(raw, lambda tail: tail.endswith((ended, ended + b"\r\n" + END))),
            "127.0.0.1",
            port,
        )
        made.append(client)
    return made


async def latency(port: int, seconds: float) -> list[float]:
    """Milliseconds of each request, 300 a second, 16 KB each, sent on time whatever comes back."""
    idle = await clients(port, 64, {"text": prompt(16_384)}, PLAIN)
    times: list[float] = []

    async def one(client: Client) -> None:
        times.append(1_000 * await client.ask())
        idle.append(client)

    pending = set()
    start = time.perf_counter()
    for i in range(int(300 * seconds)):
        await asyncio.sleep(max(start + i / 300 - time.perf_counter(), 0))
        if idle:
            task = asyncio.ensure_future(one(idle.pop()))
            pending.add(task)
            task.add_done_callback(pending.discard)
    await asyncio.gather(*pending)
    return sorted(times)


async def rate(
    port: int, seconds: float, body: dict[str, object], ended: bytes, width: int
) -> float:
    """Requests a second, ``width`` at once."""
    made = await clients(port, width, body, ended)
    end, count = time.perf_counter() + seconds, 0

    async def one(client: Client) -> None:
        nonlocal count
        while time.perf_counter() < end:
            await client.ask()
            count += 1

    start = time.perf_counter()
    await asyncio.gather(*(one(client) for client in made))
    taken_s = time.perf_counter() - start
    for client in made:
        client.done = None
        client.transport.close()
    return count / taken_s


@dataclass(frozen=True)
class Pace:
    """How fast a proxy was: by the clock, and in processor time of its own."""

    per_s: float
    cpu_us: float


async def pace(
    process: subprocess.Popen[bytes], port: int, seconds: float, body: dict[str, object], width: int
) -> Pace:
    """Requests a second through a proxy, and what each costs it."""
    ended = DONE if body.get("stream") else PLAIN
    await rate(port, min(seconds, 0.5), body, ended, width)
    before_s, start = cpu_s(process.pid), time.perf_counter()
    per_s = await rate(port, seconds, body, ended, width)
    used_s, taken_s = cpu_s(process.pid) - before_s, time.perf_counter() - start
    return Pace(per_s, 1e6 * used_s / taken_s / per_s)


def cpu_s(pid: int) -> float:
    """Processor time of a process and its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    children = "".join(one.read_text() for one in Path(f"/proc/{pid}/task").glob("*/children"))
    own_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own_s + sum(cpu_s(int(child)) for child in children.split())


def spawn(command: list[str], core: int, **environment: str) -> subprocess.Popen[bytes]:
    pinned = ["taskset", "-c", str(core), *command] if (os.cpu_count() or 1) > 1 else command
    return subprocess.Popen(
        pinned,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )


@contextlib.contextmanager
def running(command: list[str], core: int, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    process = spawn(command, core, **environment)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


async def until_served(port: int, what: str, within_s: float = 60.0) -> None:
    end_s = time.monotonic() + within_s
    while time.monotonic() < end_s:
        try:
            made = await clients(port, 1, SMALL, PLAIN)
            await asyncio.wait_for(made[0].ask(), 0.5)
        except (OSError, TimeoutError):
            await asyncio.sleep(0.1)
        else:
            return
    raise SystemExit(f"{what} does not serve")


def row(name: str, *values: object) -> None:
    print(f"{name:<44}" + "".join(f"{value:>16}" for value in values), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(serve_engine(parser.parse_args().port))
