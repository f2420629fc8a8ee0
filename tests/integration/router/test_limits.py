"""What is too much, too slow or not a request at all."""

import asyncio
import json
import time

import pytest

from hypic_router.settings import Limits

from ...support.fake_engine import answers, hangs, plain, says
from ...support.routers import routing
from ...support.wire import Call, ask, eventually


@pytest.mark.parametrize(
    ("raw", "param"),
    [
        (b'{"model": "x", ', "body"),
        (b"", "body"),
        (b"[]", "body"),
        (b'{"messages":[{"role":"user","content":"a"}],"temperature":NaN}', "body"),
        (b"[" * 100_000, "body"),
        (b"\xff\xfe\x00", "body"),
    ],
)
async def test_bad_bodies_get_400_that_names_the_field(router, engine, raw, param):
    reply = await ask(router.url, "/v1/chat/completions", raw=raw)
    assert reply.status == 400
    error = reply.json()["error"]
    assert error["param"] == param
    assert param in error["message"]
    assert error["type"] == "invalid_request_error"
    assert not engine.generated


NO_PROMPT = [
    ("/v1/chat/completions", {"messages": []}),
    ("/v1/chat/completions", {"messages": None}),
    ("/v1/chat/completions", {}),
    ("/v1/completions", {"prompt": "<<PIC_SEP>>"}),
    ("/generate", {"input_ids": []}),
]


@pytest.mark.parametrize(("path", "body"), NO_PROMPT)
async def test_a_body_without_a_prompt_is_the_engines_to_refuse(router, engine, path, body):
    engine.behave = says(plain(400, {"object": "error", "message": "Messages cannot be empty."}))
    reply = await ask(router.url, path, body)
    assert (reply.status, reply.json()["object"]) == (400, "error")
    assert engine.generated[0].json() == body


@pytest.mark.parametrize(("path", "body"), NO_PROMPT)
async def test_without_an_engine_the_router_refuses_a_body_without_a_prompt(path, body):
    async with routing([], ready=0) as router:
        reply = await ask(router.url, path, body)
        assert reply.status == 400
        assert reply.json()["error"]["param"] in ("messages", "prompt", "input_ids")


async def test_a_body_that_only_pythons_parser_reads_is_passed_on_as_it_is(router, engine):
    raw = b'{"text": "\\ud83d lone", "text": "last", "seed": 123456789012345678901234567890}'
    assert (await ask(router.url, "/generate", raw=raw)).status == 200
    assert engine.generated[0].body == raw


async def test_a_long_body_stalls_nobody_and_its_segments_are_known(router, engine):
    ids = list(range(1_000_000))
    params = {"custom_params": {"pic": {"segment_ends": [400_000, 900_000]}}}
    engine.behave = says(plain(200, {"text": "ok"}))
    engine._use = lambda _: 0  # which would stall this process itself
    stalls = []

    async def watch():
        while True:
            began_s = time.thread_time()  # not the clock: other processes may have the core
            await asyncio.sleep(0.001)
            stalls.append(time.thread_time() - began_s)

    raw = json.dumps({"input_ids": ids, "sampling_params": params}).encode()
    watching = asyncio.create_task(watch())
    reply = await ask(router.url, "/generate", raw=raw, headers=("x-hypic-explain: 1",))
    watching.cancel()
    assert reply.status == 200
    assert "of 2 segments" in reply.header("x-hypic-choice")
    assert engine.generated[0].body == raw
    assert max(stalls) < 0.1


async def test_a_long_body_that_is_wrong_gets_400_that_names_the_field(router, engine):
    text = "<<PIC_SEP>>".join("document " * 10_000 for _ in range(17))
    for _ in range(2):
        reply = await ask(router.url, "/generate", {"text": text})
        assert reply.status == 400
        assert reply.json()["error"]["param"] == "prompt"
    assert not engine.generated


async def test_too_many_segments_are_refused_with_the_limit(router, engine):
    text = "<<PIC_SEP>>".join(f"document {i}" for i in range(18))
    for path, field in (("/generate", "text"), ("/v1/completions", "prompt")):
        reply = await ask(router.url, path, {field: text})
        assert reply.status == 400
        assert "18 segments" in reply.json()["error"]["message"]
        assert "at most 16 segments" in reply.json()["error"]["message"]
    assert not engine.generated
    assert (await router.chat()).status == 200


async def test_a_body_past_the_limit_gets_413_announced_or_not(engine):
    async with routing([engine.url], limits=Limits(body_bytes=1_000)) as router:
        announced = await router.chat("x" * 2_000)
        assert announced.status == 413
        assert announced.json()["error"]["code"] == "body_too_large"
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (3_000, b"y" * 3_000)
        async with Call(
            router.url, "/generate", raw=body, headers=("Transfer-Encoding: chunked",)
        ) as call:
            assert (await call.all()).status == 413
        assert not engine.generated


@pytest.mark.parametrize("announced", [True, False])
async def test_bodies_past_what_all_may_have_get_503_until_one_ends(engine, announced):
    engine.behave = hangs
    text = "x" * 700
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(raw := json.dumps({"text": text}).encode()), raw)
    more = {} if announced else {"raw": chunked, "headers": ("Transfer-Encoding: chunked",)}
    limits = Limits(body_bytes=1_000, bodies_bytes=1_000)
    async with routing([engine.url], limits=limits) as router:
        async with Call(router.url, "/generate", {"text": text}):
            await eventually(lambda: engine.running == 1)
            assert 700 < await router.metric("hypic_router_body_bytes") < 1_000
            crowded = await ask(router.url, "/generate", {"text": text}, **more)
            assert crowded.status == 503
            assert crowded.json()["error"]["code"] == "router_crowded"
            assert crowded.header("retry-after") == "1"
            assert len(engine.generated) == 1

        async def free():
            return await router.metric("hypic_router_body_bytes") == 0

        await eventually(free)
        engine.behave = answers
        assert (await ask(router.url, "/generate", {"text": text}, **more)).status == 200
        assert await free()


async def test_a_body_that_was_begun_keeps_its_room_and_is_served(engine):
    limits = Limits(body_bytes=1_000, bodies_bytes=1_000)
    head, body = b"POST /generate HTTP/1.1\r\nHost: x\r\n", json.dumps({"text": "x" * 700}).encode()
    async with (
        routing([engine.url], limits=limits) as router,
        Call(router.url, "/generate", raw=b"", headers=()) as slow,
    ):
        assert (await slow.all()).status == 400  # the empty body of the helper itself
        slow.writer.write(head + b"Content-Length: %d\r\n\r\n%s" % (len(body), body[:1]))

        async def begun():
            return await router.metric("hypic_router_body_bytes") == len(body)

        await eventually(begun)
        assert (await ask(router.url, "/generate", {"text": "x" * 700})).status == 503
        slow.writer.write(body[1:])
        assert (await slow.all()).status == 200


async def test_a_body_that_does_not_arrive_gets_408(engine):
    async with (
        routing([engine.url], limits=Limits(body_s=0.2)) as router,
        Call(router.url, "/generate", raw=b"", headers=()) as call,
    ):
        call.writer.write(b"POST /generate HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
        assert (await call.all()).status == 400  # the empty body of the helper itself
        assert (await call.all()).status == 408


async def test_a_header_past_the_limit_gets_431(engine):
    async with routing([engine.url], limits=Limits(header_bytes=4_096)) as router:
        reply = await router.chat(headers=("X-Long: " + "h" * 5_000,))
        assert reply.status == 431
        assert reply.json()["error"]["message"]


async def test_what_is_not_http_gets_json(router):
    host, port = router.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"\x16\x03\x01 what is this\r\n\r\n")
    raw = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    await writer.wait_closed()
    assert raw.split(b" ")[1] == b"400"
    assert json.loads(raw.split(b"\r\n\r\n", 1)[1])["error"]["message"]


async def test_a_connection_that_never_sends_a_whole_head_is_closed(engine):
    async with routing([engine.url], limits=Limits(head_s=0.2)) as router:
        host, port = router.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /generate HTTP/1.1\r\nX-Slow: ")
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
        await writer.wait_closed()
        assert (await router.chat()).status == 200
