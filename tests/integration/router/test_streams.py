"""Streams: as they come, ended as they should, and ended at the engine when the client leaves."""

import asyncio
import json
import time
import zlib

import pytest

from hypic_router.settings import Limits

from ...support.fake_engine import (
    END,
    SSE_HEAD,
    FakeEngine,
    breaks_off,
    chunk,
    event,
    hangs,
    says,
    streams_for_ever,
    token,
)
from ...support.routers import chat, routing
from ...support.wire import Call, eventually

CHAT = "/v1/chat/completions"


def texts(reply):
    parsed = [json.loads(one) for one in reply.events() if one != b"[DONE]"]
    return "".join(
        choice["delta"]["content"] for one in parsed for choice in one.get("choices", ())
    )


async def test_a_stream_is_passed_on_event_by_event(router, engine):
    go = asyncio.Event()

    async def behave(turn):
        await turn.send(SSE_HEAD, event(token("a")))
        await go.wait()
        await turn.send(event(token("b", "stop")), event(b"[DONE]"), END)

    engine.behave = behave
    async with Call(router.url, CHAT, chat(stream=True)) as call:
        await call.head()
        pieces = call.pieces()
        first = await asyncio.wait_for(anext(pieces), 2)
        assert b'"content": "a"' in first
        go.set()
        rest = b"".join([piece async for piece in pieces])
        assert rest.endswith(b"data: [DONE]\n\n")
        assert call.reply.clean


async def test_events_cut_anywhere_arrive_whole_and_in_order(router, engine):
    whole = b"".join(b"data: " + json.dumps(token(t)).encode() + b"\n\n" for t in "abcdef")
    whole += b": a note\n\ndata: [DONE]\n\n"

    async def behave(turn):
        await turn.send(SSE_HEAD)
        for at in range(0, len(whole), 7):
            await turn.send(chunk(whole[at : at + 7]))
            await asyncio.sleep(0)
        await turn.send(END)

    engine.behave = behave
    reply = await router.chat(stream=True)
    assert reply.body == whole
    assert reply.clean


@pytest.mark.parametrize("how", ["reset", "close", "half_event", "no_done"])
async def test_a_stream_that_breaks_off_ends_with_one_error_event(router, engine, how):
    engine.behave = breaks_off(how)
    reply = await router.chat(stream=True)
    assert reply.status == 200
    assert reply.clean
    parsed = [json.loads(one) for one in reply.events()]
    assert [one["choices"][0]["delta"]["content"] for one in parsed[:-1]] == ["a", "b"]
    error = parsed[-1]["error"]
    assert error["message"]
    assert error["code"] == "engine_broken"
    assert await router.metric('hypic_router_errors_total{reason="engine_broken"}') == 1


async def test_a_refusal_of_a_streamed_request_has_its_status_and_is_json(router, engine):
    refusal = {"object": "error", "message": "bad stop", "code": 400}
    body = chunk(json.dumps(refusal).encode()) + END
    head = SSE_HEAD.replace(b"200 OK", b"400 Bad").replace(
        b"text/event-stream", b"application/json"
    )
    engine.behave = says(head + body)
    reply = await router.chat(stream=True)
    assert (reply.status, reply.json()) == (400, refusal)


class Reader:
    """As strict as the strictest in use: a blank line ends an event once any field was set."""

    def __init__(self):
        self.data, self.fields, self.events = [], False, []

    def line(self, line):
        name, _, value = line.partition(":")
        if line and not name:
            return  # a note
        if line:
            self.fields = True
            self.data += [value.removeprefix(" ")] if name == "data" else []
        elif self.fields:
            self.events.append("\n".join(self.data))
            self.data, self.fields = [], False


async def test_a_strict_reader_survives_notes_and_long_waits(router, engine):
    async def slow(turn):
        await asyncio.sleep(1.0)
        await turn.send(SSE_HEAD, chunk(b": a note from upstream\n\n"), event(token("one ")))
        await asyncio.sleep(0.5)
        await turn.send(chunk(b": another\n\n"), event(token("two", "stop")))
        await turn.send(event(b"[DONE]"), END)

    engine.behave = slow
    reply = await router.chat(stream=True)
    reader = Reader()
    for line in reply.body.decode().split("\n"):
        reader.line(line.rstrip("\r"))
    *events, last = reader.events
    assert (last, reply.clean) == ("[DONE]", True)
    parts = [json.loads(one)["choices"][0]["delta"]["content"] for one in events]
    assert "".join(parts) == "one two"


async def test_a_silent_stream_ends_at_the_idle_limit(engine):
    engine.behave = breaks_off("silence")
    async with routing([engine.url], limits=Limits(idle_s=0.3)) as router:
        reply = await router.chat(stream=True)
        assert json.loads(reply.events()[-1])["error"]["code"] == "engine_late"
        assert reply.clean
        assert reply.seconds < 2
        await eventually(lambda: engine.running == 0)


async def test_an_engines_own_error_event_is_not_followed_by_another(router, engine):
    async def behave(turn):
        await turn.send(SSE_HEAD, event(token("a")), event({"error": {"message": "too long"}}), END)

    engine.behave = behave
    reply = await router.chat(stream=True)
    assert len([one for one in reply.events() if b'"error"' in one]) == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_an_engine_that_says_nothing_gives_504_at_the_limit(engine, stream):
    engine.behave = hangs
    limits = Limits(first_byte_s=0.3, answer_s=0.3)
    async with routing([engine.url], limits=limits) as router:
        reply = await router.chat(stream=stream)
        assert reply.status == 504
        assert reply.json()["error"]["code"] == "engine_late"
        assert reply.header("retry-after")
        await eventually(lambda: engine.running == 0)


async def left_after(engine, began_s):
    await eventually(lambda: engine.running == 0, within_s=2)
    return time.monotonic() - began_s


@pytest.mark.parametrize("path", [CHAT, "/v1/completions", "/generate"])
async def test_a_client_that_leaves_a_stream_frees_the_engine_within_100_ms(router, engine, path):
    engine.behave = streams_for_ever
    body = {**chat(stream=True), "prompt": "x", "text": "x"}
    async with Call(router.url, path, body) as call:
        await call.head()
        await anext(call.pieces())
        call.drop()
        assert await left_after(engine, time.monotonic()) < 0.1


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_while_it_waits_frees_the_engine_within_100_ms(
    router, engine, stream
):
    engine.behave = hangs
    async with Call(router.url, CHAT, chat(stream=stream)) as call:
        await eventually(lambda: engine.running == 1)
        call.writer.close()
        assert await left_after(engine, time.monotonic()) < 0.1
    assert await router.metric('hypic_router_requests_total{code="499"}') == 1


async def test_24_clients_that_leave_at_once_free_the_engine(router, engine):
    engine.behave = streams_for_ever
    calls = [Call(router.url, CHAT, chat(stream=True, n=3)) for _ in range(24)]
    for call in calls:
        await call.__aenter__()
        await call.head()
    assert engine.running == 24
    for call in calls:
        call.drop()
    assert await left_after(engine, time.monotonic()) < 0.5
    engine.behave = FakeEngine.behave
    assert (await router.chat()).status == 200
    assert [one["requests"] for one in (await router.fleet())["engines"]] == [0]


async def test_a_slow_reader_slows_its_engine_and_nobody_else(router, engine):
    sent = 0

    async def floods(turn):
        nonlocal sent
        await turn.send(SSE_HEAD)
        event_bytes = event(token("x" * 60_000))
        leaving = asyncio.ensure_future(turn.left())
        while not leaving.done():
            send = asyncio.ensure_future(turn.send(event_bytes))
            await asyncio.wait({send, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not send.done():
                send.cancel()
                break
            sent += len(event_bytes)
            await asyncio.sleep(0)
        await leaving
        return True

    engine.behave = floods
    async with Call(router.url, CHAT, chat(stream=True)) as call:
        await call.head()

        async def stalled():
            before = sent
            await asyncio.sleep(0.2)
            return 0 < sent == before

        await eventually(stalled)
        assert sent < 40 << 20
        engine.behave = FakeEngine.behave
        assert (await router.chat()).status == 200


async def test_a_stream_is_asked_for_uncompressed(router, engine):
    await router.chat(stream=True, headers=("Accept-Encoding: gzip, br",))
    assert engine.generated[0].headers["accept-encoding"] == "identity"


async def test_a_compressed_stream_is_passed_on_as_it_comes(router, engine):
    packer = zlib.compressobj(wbits=31)

    def packed(data):
        return chunk(packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH))

    async def behave(turn):
        head = SSE_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
        await turn.send(head, packed(b'data: {"a": 1}\n\n'), packed(b"data: [DONE]\n\n"), END)

    engine.behave = behave
    reply = await router.chat(stream=True)
    assert reply.header("content-encoding") == "gzip"
    assert zlib.decompressobj(wbits=31).decompress(reply.body).endswith(b"[DONE]\n\n")


async def test_a_plain_answer_that_breaks_off_late_is_visibly_short(router, engine):
    async def behave(turn):
        head = (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9000000\r\n\r\n"
        )
        await turn.send(head, b"x" * 3_000_000)
        return True

    engine.behave = behave
    reply = await router.chat()
    assert reply.status == 200
    assert not reply.clean
