"""What the router adds: latency, requests and stream chunks a second, and the cost of choosing.

    python benchmarks/router.py [--seconds 5] [--only latency,rate,chunks,choose]

Three processes: a fake engine written for the purpose, the router (on a core of its own where there
are two), and this load generator. Prints a table and one last line.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from hypic_engine.contract.events import Item, Page
from hypic_router.core.choose import choose
from hypic_router.core.cut import Segment
from hypic_router.core.prompt import Prompt
from hypic_router.core.residency import NOTHING, with_page
from hypic_router.core.score import POLICIES
from hypic_router.core.workers import Address, Fleet, Health, State, Worker

ENGINE_PORT, ROUTER_PORT, METRICS_PORT = 17_180, 17_181, 17_182
SEP = "<<PIC_SEP>>"
CHUNKS_A_STREAM = 500
PLAIN = json.dumps({"text": "ok", "meta_info": {"cached_tokens": 0}}).encode()
PLAIN_ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(PLAIN)
) + PLAIN
NOT_HERE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
HEALTHY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
EVENT = b"data: " + json.dumps({"text": "token", "index": 0}).encode() + b"\n\n"
EVENT_CHUNK = b"%x\r\n%s\r\n" % (len(EVENT), EVENT)
LAST_CHUNKS = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


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
                self.transport.write(HEALTHY if b" /health" in head else NOT_HERE)
            elif b'"stream": true' in body:
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


async def serve_engine() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Engine, "127.0.0.1", ENGINE_PORT)
    await server.serve_forever()


class Client(asyncio.Protocol):
    """One connection that asks again as soon as it is answered."""

    def __init__(self, request: bytes, ended: Callable[[bytes], bool]) -> None:
        self.request, self.ended = request, ended
        self.done: asyncio.Future[float] | None = None
        self.received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.tail = transport, b""

    def ask(self) -> "asyncio.Future[float]":
        self.done = asyncio.get_running_loop().create_future()
        self.began_s, self.tail, self.received = time.perf_counter(), b"", 0
        self.transport.write(self.request)
        return self.done

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
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
    loop = asyncio.get_running_loop()
    made = []
    for _ in range(count):
        _, client = await loop.create_connection(
            lambda: Client(request(port, body), lambda tail: tail.endswith(ended)),
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
    for client in made:
        client.transport.close()
    return count / (time.perf_counter() - start)


def choosing() -> float:
    """Milliseconds of processor time to choose among 64 engines with 100,000 segments."""
    each, workers = 100_000 // 64, []
    for n in range(64):
        items = tuple(Item(f"k{n}-{i}", (f"{n:016x}{i:016x}",), 1_000, 1) for i in range(each))
        residency = with_page(NOTHING, Page("e", 0, items, None))
        at = Address(f"engine-{n}", f"http://engine-{n}")
        workers.append(Worker(at, Health(State.READY, ""), residency))
    fleet = Fleet(tuple(workers))
    segments = tuple(Segment(f"{n:016x}{n:016x}", n_bytes=4_000) for n in range(8))
    asked = Prompt(segments, 32_100)
    times = []
    for turn in range(300):
        start = time.thread_time()
        choose(asked, fleet, POLICIES["segment"], turn=turn, now_s=0.0)
        times.append(1_000 * (time.thread_time() - start))
    return statistics.median(times)


def spawn(command: list[str], core: int) -> subprocess.Popen[bytes]:
    pinned = ["taskset", "-c", str(core), *command] if (os.cpu_count() or 1) > 1 else command
    return subprocess.Popen(pinned, stderr=subprocess.DEVNULL)


def cpu_s(process: subprocess.Popen[bytes]) -> float:
    """Processor time that a process has used: on a busy machine it says more than the clock."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def until_served() -> None:
    for _ in range(200):
        try:
            made = await clients(ROUTER_PORT, 1, {"text": "x"}, PLAIN)
            await asyncio.wait_for(made[0].ask(), 0.5)
        except (OSError, TimeoutError):
            await asyncio.sleep(0.1)
        else:
            return
    raise SystemExit("the router does not serve")


def row(name: str, *values: object) -> None:
    print(f"{name:<44}" + "".join(f"{value:>14}" for value in values), flush=True)


async def measure(router: subprocess.Popen[bytes], seconds: float, only: set[str]) -> None:
    last = {"p50": float("nan"), "p99": float("nan"), "rate": 0.0, "chunks": 0.0, "choose": 0.0}
    if "latency" in only:
        direct, through = await latency(ENGINE_PORT, seconds), await latency(ROUTER_PORT, seconds)
        quantiles = {
            q: (direct[int(q * len(direct))], through[int(q * len(through))]) for q in (0.5, 0.99)
        }
        row("300 requests/s of 16 KB", "direct ms", "through ms", "added ms")
        for q, (a, b) in quantiles.items():
            row(f"  p{q * 100:.0f}", f"{a:.2f}", f"{b:.2f}", f"{b - a:.2f}")
            last[f"p{q * 100:.0f}"] = b - a
    if "rate" in only:
        for name, size in (("small", 64), ("16 KB", 16_384), ("230 KB", 235_520)):
            body = {"text": prompt(size) if size > 1_000 else "Say hello."}
            before_s, start = cpu_s(router), time.perf_counter()
            got = await rate(ROUTER_PORT, seconds, body, PLAIN, 64)
            used_ms = 1_000 * (cpu_s(router) - before_s) / (time.perf_counter() - start) / got
            row(f"requests/s, {name}, 64 at once", f"{got:.0f}", f"{used_ms:.2f} ms CPU")
            last["rate"] = last["rate"] or got
    if "chunks" in only:
        body = {"text": "x", "stream": True}
        before_s, start = cpu_s(router), time.perf_counter()
        streams = await rate(ROUTER_PORT, seconds, body, b"0\r\n\r\n", 16)
        last["chunks"] = streams * CHUNKS_A_STREAM
        spent_s = (cpu_s(router) - before_s) / (time.perf_counter() - start)
        used_us = 1e6 * spent_s / last["chunks"]
        row("stream chunks/s, 16 at once", f"{last['chunks']:.0f}", f"{used_us:.1f} us CPU")
    if "choose" in only:
        last["choose"] = choosing()
        row("choosing, 64 engines x 100k segments", f"{last['choose']:.3f} ms")
    print(
        f"router: added p50 {last['p50']:.2f} ms p99 {last['p99']:.2f} ms at 300 rps x 16 KB | "
        f"max {last['rate']:.0f} rps | stream chunks {last['chunks']:.0f}/s | "
        f"choose {last['choose']:.3f} ms"
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--only", default="latency,rate,chunks,choose")
    parser.add_argument("--engine", action="store_true", help="be the fake engine")
    args = parser.parse_args()
    if args.engine:
        await serve_engine()
        return
    python = sys.executable
    flags = ["--host", "127.0.0.1", "--port", str(ROUTER_PORT), "--metrics-port", str(METRICS_PORT)]
    flags += ["--model", "m", "--engines", f"http://127.0.0.1:{ENGINE_PORT}", "--unlisted-s", "0"]
    engine = spawn([python, __file__, "--engine"], 1)
    router = spawn([python, "-m", "hypic_router", *flags], 0)
    os.sched_setaffinity(0, {1} if (os.cpu_count() or 1) > 1 else {0})
    try:
        await until_served()
        await measure(router, args.seconds, set(args.only.split(",")))
    finally:
        for process in (router, engine):
            process.terminate()
            process.wait(20)


if __name__ == "__main__":
    asyncio.run(main())
