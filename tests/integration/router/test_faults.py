"""Trouble while there is load: what clients saw is counted."""

import asyncio
import resource
import time
from collections import Counter

import pytest

from ...support.fake_engine import END, SSE_HEAD, FakeEngine, event, plain, says, token
from ...support.router_process import started
from ...support.routers import chat, routing
from ...support.wire import ask, eventually

CHAT = "/v1/chat/completions"
# A process has two sockets a stream; where the system allows fewer, as many as there may be.
FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
IDLE_STREAMS = min(10_000, FILES // 2 - 100)


async def test_a_storm_of_5xx_is_passed_on_and_not_multiplied():
    async with FakeEngine() as one, FakeEngine() as other:
        for engine in (one, other):
            engine.behave = says(plain(500, {"message": "CUDA error"}))
        async with routing([one.url, other.url]) as router:
            replies = await asyncio.gather(*(router.chat(f"{i}") for i in range(100)))
            assert [reply.status for reply in replies] == [500] * 100
            assert len(one.generated) + len(other.generated) == 100


class Clients:
    """Clients that ask without a pause, and what they saw."""

    def __init__(self, url, count):
        self.seen = Counter()
        self.stop = asyncio.Event()
        self.slowest_s = 0.0
        self.tasks = [asyncio.create_task(self._ask(url, i)) for i in range(count)]

    async def _ask(self, url, name):
        while not self.stop.is_set():
            began_s = time.monotonic()
            try:
                reply = await ask(url, CHAT, chat(f"{name}"))
                self.seen[reply.status] += 1
                assert reply.status != 503 or reply.header("retry-after")
            except (OSError, asyncio.IncompleteReadError):
                self.seen["no router"] += 1
                await asyncio.sleep(0.02)
            self.slowest_s = max(self.slowest_s, time.monotonic() - began_s)

    async def answered(self, more):
        before = self.seen[200]
        await eventually(lambda: self.seen[200] >= before + more)

    async def ended(self):
        self.stop.set()
        await asyncio.gather(*self.tasks)


async def test_a_flapping_engine_costs_no_request():
    async with (
        FakeEngine() as steady,
        FakeEngine() as flapping,
        routing([steady.url, flapping.url]) as router,
    ):
        clients = Clients(router.url, 8)
        for _ in range(4):
            before = len(flapping.generated)
            await eventually(lambda n=before: len(flapping.generated) > n)
            await flapping.stop()
            await clients.answered(20)
            await flapping.__aenter__()
            await router.ready(2)
        await clients.ended()
        assert set(clients.seen) == {200}
        print(f"flapping engine: {dict(clients.seen)}, slowest {clients.slowest_s:.2f} s")


async def test_a_router_that_is_killed_under_load_is_back_with_its_successor():
    async with FakeEngine() as engine:
        flags = ("--engines", engine.url)
        async with started(*flags) as router:
            port = int(router.url.rsplit(":", 1)[1])
            clients = Clients(router.url, 8)
            await clients.answered(50)
            router.process.kill()
            await router.process.wait()
            await eventually(lambda: clients.seen["no router"])
            await eventually(lambda: engine.running == 0)
        async with started(*flags, port=port):
            await clients.answered(50)
            await clients.ended()
        # Until its successor has asked the engine, a client hears when to come back.
        assert set(clients.seen) <= {200, 503, "no router"}
        assert clients.slowest_s < 10
        print(f"router killed: {dict(clients.seen)}, slowest {clients.slowest_s:.2f} s")


class IdleEngine(asyncio.Protocol):
    """Starts a stream for each request and ends it on demand."""

    def __init__(self, streams):
        self.streams = streams

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        if data.startswith(b"GET"):
            self.transport.write(plain(200, {}))
        elif data.startswith(b"POST"):  # a body may come in a piece of its own
            self.transport.write(SSE_HEAD + event(token("a")))
            self.streams.add(self)

    def connection_lost(self, _):
        self.streams.discard(self)

    def end(self):
        self.transport.write(event(token("b", "stop")) + event(b"[DONE]") + END)


class IdleClient(asyncio.Protocol):
    """Asks for a stream and keeps what comes."""

    def __init__(self):
        self.data = b""

    def connection_made(self, transport):
        self.transport = transport
        body = b'{"text": "x", "stream": true}'
        head = b"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
        transport.write(head + body)

    def data_received(self, data):
        self.data += data


@pytest.fixture
def many_files():
    """Leave for as many sockets as there may be, which the router takes for itself."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_10_000_idle_streams_leave_room_for_others_and_end_whole(many_files):
    loop, streams = asyncio.get_running_loop(), set()
    server = await loop.create_server(lambda: IdleEngine(streams), "127.0.0.1", 0, backlog=1_024)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    flags = ("--engines", url, "--max-requests-per-engine", "20000", "--idle-timeout-s", "600")
    resource.setrlimit(resource.RLIMIT_NOFILE, (1_024, FILES))
    async with started(*flags) as router:
        many_files()
        port, clients = int(router.url.rsplit(":", 1)[1]), []
        while (missing := IDLE_STREAMS - len(clients)) > 0:
            count = min(missing, 200)
            made = (loop.create_connection(IdleClient, "127.0.0.1", port) for _ in range(count))
            clients += [client for _, client in await asyncio.gather(*made)]
        await eventually(lambda: all(one.data for one in clients), within_s=60)
        began_s = time.monotonic()
        assert (await ask(router.url, "/v1/models", method="GET")).status == 200
        print(f"a request beside {IDLE_STREAMS} streams: {time.monotonic() - began_s:.3f} s")
        for stream in list(streams):
            stream.end()
        await eventually(lambda: all(one.data.endswith(END) for one in clients), within_s=60)
        assert all(one.data.count(b"[DONE]") == 1 for one in clients)
        for one in clients:
            one.transport.close()
    server.close()
