"""HTTP below the level of a request: framing, pipelining, limits, and engines that frame oddly."""

import asyncio
import json

import pytest

from hypic_router.settings import Limits
from hypic_router.wire.inbound import PIPELINED

from ...support.fake_engine import END, FakeEngine, answers, chunk, event, hangs, says, token
from ...support.routers import chat, routing
from ...support.wire import Call, ask, eventually

OK = b"HTTP/1.1 200 OK\r\n"
JSON = b"Content-Type: application/json\r\n"


class Raw:
    """A connection on which a test says what it likes."""

    def __init__(self, router):
        self.host, self.port = router.url.removeprefix("http://").split(":")

    async def __aenter__(self):
        self.reader, self.writer = await asyncio.open_connection(self.host, int(self.port))
        return self

    async def __aexit__(self, *_):
        self.writer.close()

    def say(self, data):
        self.writer.write(data)

    async def head(self):
        raw = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 10)
        line, *lines = raw.decode("latin-1").split("\r\n")
        pairs = (one.split(": ", 1) for one in lines if one)
        return int(line.split()[1]), {name.lower(): value for name, value in pairs}

    async def answer(self):
        status, headers = await self.head()
        body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return status, headers, body

    async def rest(self):
        return await asyncio.wait_for(self.reader.read(), 10)


def post(path, body=b"", *lines, version=b"1.1"):
    head = [b"POST %s HTTP/%s" % (path, version), b"Host: x", *lines]
    if not any(line.startswith(b"Transfer") for line in lines):
        head.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def asking(text):
    return post(b"/generate", json.dumps({"text": text}).encode())


async def test_requests_sent_at_once_are_answered_in_order(router, engine):
    async def slow_first(turn):
        await asyncio.sleep(0.1 if turn.request.json()["text"] == "0" else 0)
        turn.engine.answer = lambda *_: {"text": turn.request.json()["text"]}
        await answers(turn)

    engine.behave = slow_first
    async with Raw(router) as raw:
        raw.say(b"".join(asking(f"{i}") for i in range(5)))
        found = [await raw.answer() for _ in range(5)]
    assert [json.loads(body)["text"] for _, _, body in found] == ["0", "1", "2", "3", "4"]


async def test_requests_past_the_limit_of_a_connection_end_it_after_the_others(router):
    async with Raw(router) as raw:
        raw.say(asking("x") * (PIPELINED + 2))
        found = [(await raw.answer())[0] for _ in range(PIPELINED + 2)]
        assert found == [200] * (PIPELINED + 1) + [400]
        assert await raw.rest() == b""


async def test_garbage_after_a_request_does_not_cost_its_answer(router):
    async with Raw(router) as raw:
        raw.say(asking("x") + b"\x16\x03\x01 what is this\r\n\r\n")
        assert [(await raw.answer())[0] for _ in range(2)] == [200, 400]
        assert await raw.rest() == b""


@pytest.mark.parametrize("cut", [1, 7, 40])
async def test_a_request_may_arrive_in_any_pieces(router, engine, cut):
    whole = asking("caf\u00e9 " * 5)
    async with Raw(router) as raw:
        for at in range(0, len(whole), cut):
            raw.say(whole[at : at + cut])
            await raw.writer.drain()
            await asyncio.sleep(0)
        assert (await raw.answer())[0] == 200
    assert engine.generated[0].body == whole.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize(
    "lines",
    [
        (b"Transfer-Encoding: chunked", b"Content-Length: 3"),
        (b"Content-Length: 3", b"Content-Length: 4"),
        (b"Transfer-Encoding: gzip",),
        (b"Content-Length: -1",),
        (b"X-Folded: a\r\n b",),
        (b"X-Nul: a\x00b",),
        (b"X-Space : a",),
    ],
)
async def test_a_head_that_two_servers_could_read_differently_is_refused(router, engine, lines):
    async with Raw(router) as raw:
        raw.say(b"\r\n".join((b"POST /generate HTTP/1.1", b"Host: x", *lines)) + b"\r\n\r\nabc")
        status, headers, body = await raw.answer()
        assert (status, headers["connection"]) == (400, "close")
        assert json.loads(body)["error"]["code"] == "bad_http"
    assert not engine.generated


async def test_continue_is_said_only_when_the_body_is_wanted(router):
    body = json.dumps({"text": "x"}).encode()
    expecting = (b"Expect: 100-continue", b"Content-Length: %d" % len(body))
    async with Raw(router) as raw:
        raw.say(post(b"/generate", b"", *expecting).replace(b"Content-Length: 0\r\n", b""))
        assert (await raw.head())[0] == 100
        raw.say(body)
        assert (await raw.answer())[0] == 200
    async with Raw(router) as raw:
        raw.say(post(b"/nothing", b"", *expecting).replace(b"Content-Length: 0\r\n", b""))
        status, headers, _ = await raw.answer()
        assert (status, headers["connection"]) == (404, "close")


async def test_a_client_that_is_refused_while_it_sends_can_read_the_answer(router):
    async with Raw(router) as raw:
        raw.say(post(b"/nothing", b"", b"Transfer-Encoding: chunked") + chunk(b"x" * 10_000))
        assert (await raw.answer())[0] == 404
        raw.say(chunk(b"x" * 200_000))  # still on its way when the answer was sent
        await raw.writer.drain()
        assert await raw.rest() == b""


async def test_an_http_1_0_client_gets_a_stream_that_ends_with_the_connection(router):
    async with Raw(router) as raw:
        raw.say(
            post(b"/v1/chat/completions", json.dumps(chat(stream=True)).encode(), version=b"1.0")
        )
        status, headers = await raw.head()
        assert status == 200
        assert "transfer-encoding" not in headers
        assert (await raw.rest()).endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("pause_s", [0, 0.05])
async def test_another_protocol_that_is_offered_is_not_taken(router, pause_s):
    lines = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk")
    async with Raw(router) as raw:
        for piece in (post(b"/generate", b'{"text": ', *lines, b"X: y"), b'"x"}'):
            raw.say(piece.replace(b"Content-Length: 9", b"Content-Length: 13"))
            await asyncio.sleep(pause_s)
        status, headers, _ = await raw.answer()
        assert (status, headers["connection"]) == (200, "close")
        assert await raw.rest() == b""


async def test_a_whole_url_is_a_target_too(router):
    async with Raw(router) as raw:
        raw.say(post(b"http://router.test/generate?a=b#c", b'{"text": "x"}'))
        assert (await raw.answer())[0] == 200


async def test_a_client_that_closes_its_side_has_left(router, engine):
    engine.behave = hangs
    async with Raw(router) as raw:
        raw.say(asking("x"))
        await eventually(lambda: engine.running == 1)
        raw.writer.write_eof()
        await eventually(lambda: engine.running == 0, within_s=2)


@pytest.mark.parametrize("endless", [b"X-Long: ", b"X: y\r\n" * 100])
async def test_a_head_without_end_gets_431(engine, endless):
    async with (
        routing([engine.url], limits=Limits(header_bytes=4_096)) as router,
        Raw(router) as raw,
    ):
        raw.say(b"POST /generate HTTP/1.1\r\n" + endless)
        for _ in range(50):
            raw.say(endless * 100)
            await asyncio.sleep(0)
        status, _, body = await raw.answer()
        assert (status, json.loads(body)["error"]["code"]) == (431, "bad_http")


async def test_what_stands_between_chunks_has_an_end(engine):
    async with (
        routing([engine.url], limits=Limits(header_bytes=4_096)) as router,
        Raw(router) as raw,
    ):
        raw.say(post(b"/generate", b"", b"Transfer-Encoding: chunked") + b"1;a=")
        for _ in range(10):
            await asyncio.sleep(0.01)
            raw.say(b"b" * 1_000)
        assert (await raw.answer())[0] == 431


async def test_a_second_head_that_never_comes_whole_ends_the_connection(engine):
    async with routing([engine.url], limits=Limits(head_s=0.3)) as router, Raw(router) as raw:
        raw.say(asking("x"))
        assert (await raw.answer())[0] == 200
        await asyncio.sleep(0.4)  # a kept connection may rest for longer than a head may take
        raw.say(asking("x"))
        assert (await raw.answer())[0] == 200
        raw.say(b"POST /generate HTTP/1.1\r\nX-Slow: ")
        assert await asyncio.wait_for(raw.rest(), 5) == b""


async def test_a_client_that_does_not_read_a_plain_answer_is_left_at_the_idle_limit(engine):
    engine.behave = says(OK + JSON + b"Content-Length: 900000\r\n\r\n" + b"x" * 900_000)
    limits = Limits(idle_s=0.3)
    async with routing([engine.url], limits=limits) as router, Raw(router) as raw:
        raw.say(asking("x") * 30)
        await eventually(lambda: engine.finished >= 1)

        async def left():
            return await router.metric('hypic_router_requests_total{code="499"}') == 1

        await eventually(left)
        assert await router.metric("hypic_router_running_requests") == 0
        assert await router.metric("hypic_router_body_bytes") == 0


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
        + OK
        + JSON
        + b'Content-Length: 14\r\n\r\n{"text": "ok"}',
        OK + JSON + b'\r\n{"text": "ok"}',
        OK
        + JSON
        + b"Transfer-Encoding: chunked\r\n\r\n"
        + chunk(b'{"text":')
        + chunk(b'"ok"}')
        + END,
        b"HTTP/1.0 200 OK\r\n" + JSON + b'\r\n{"text": "ok"}',
    ],
    ids=["interim", "until_close", "chunked", "http_1_0"],
)
async def test_every_framing_that_an_engine_may_use_is_understood(answer):
    closing = b"Content-Length" not in answer and b"chunked" not in answer
    async with (
        FakeEngine(behave=says(answer, close=closing)) as engine,
        routing([engine.url]) as router,
    ):
        for _ in range(3):
            reply = await ask(router.url, "/generate", {"text": "x"})
            assert (reply.status, reply.clean) == (200, True)
            assert reply.json() == {"text": "ok"}


@pytest.mark.parametrize(
    "extra", [b"HTTP/1.1 408 Request Timeout\r\n\r\n", b"surplus", OK + b"\r\n"]
)
async def test_what_an_engine_says_unasked_reaches_nobody(extra):
    whole = OK + JSON + b"Content-Length: 2\r\n\r\n{}"
    async with (
        FakeEngine(behave=says(whole + extra)) as engine,
        routing([engine.url]) as router,
    ):
        for _ in range(4):
            reply = await ask(router.url, "/generate", {"text": "x"})
            assert (reply.status, reply.body) == (200, b"{}")


async def test_an_engines_head_without_end_gives_502():
    async def endless(turn):
        while True:
            await turn.send(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1_000)

    async with FakeEngine(behave=endless) as engine, routing([engine.url]) as router:
        reply = await ask(router.url, "/generate", {"text": "x"})
        assert (reply.status, reply.json()["error"]["code"]) == (502, "engine_broken")


async def test_headers_keep_their_bytes_in_both_directions(router, engine):
    name = "Orsund \u2013 caf\u00e9".encode()
    engine.behave = says(OK + b"X-Name: " + name + b"\r\nContent-Length: 0\r\n\r\n")
    async with Raw(router) as raw:
        raw.say(post(b"/generate", b'{"text": "x"}', b"X-Name: " + name))
        assert (await raw.head())[1]["x-name"].encode("latin-1") == name
    assert engine.generated[0].headers["x-name"].encode("latin-1") == name


async def test_a_stream_to_a_client_that_left_mid_event_ends_at_the_engine(router, engine):
    async def one_then_wait(turn):
        await turn.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
        await turn.send(b"Transfer-Encoding: chunked\r\n\r\n", event(token("a")))
        await turn.left()
        return True

    engine.behave = one_then_wait
    async with Call(router.url, "/v1/chat/completions", chat(stream=True)) as call:
        await call.head()
        await anext(call.pieces())
        call.drop()
        await eventually(lambda: engine.running == 0, within_s=2)
