"""Engines that fail: who is asked instead, what clients hear, what the next request does."""

import asyncio

import pytest

from ...support.fake_engine import (
    SSE_HEAD,
    FakeEngine,
    answers,
    hangs,
    plain,
    resets_at_once,
    says,
)
from ...support.routers import routing
from ...support.wire import ask, eventually, reset


@pytest.fixture
async def engines():
    async with FakeEngine() as one, FakeEngine() as other:
        yield one, other


async def test_a_dead_engine_costs_no_request(engines):
    one, other = engines
    async with routing([one.url, other.url]) as router:
        await one.stop()
        replies = await asyncio.gather(*(router.chat(f"{i}") for i in range(20)))
        assert [reply.status for reply in replies] == [200] * 20
        assert len(other.generated) == 20


async def test_a_draining_engine_passes_the_request_to_another_llmd_2188(engines):
    one, other = engines
    draining = plain(503, {"message": "draining"}, b"X-Hypic-Draining: 1", b"Retry-After: 5")
    one.behave = says(draining)
    async with routing([one.url, other.url]) as router:
        replies = [await router.chat() for _ in range(6)]
        assert [reply.status for reply in replies] == [200] * 6
        assert {reply.header("x-hypic-engine") for reply in replies} == {other.url}


async def test_when_every_engine_drains_the_client_gets_503_and_when_to_come_back(engines):
    for engine in engines:
        engine.behave = says(plain(503, {}, b"X-Hypic-Draining: 1"))
    async with routing([engine.url for engine in engines]) as router:
        reply = await router.chat()
        assert reply.status == 503
        assert reply.header("retry-after")
        assert reply.json()["error"]["code"] == "engine_draining"


async def test_an_overloaded_engine_is_believed_and_not_retried(engines):
    one, other = engines
    for engine in engines:
        engine.behave = says(plain(503, {"message": "the queue is full"}))
    async with routing([one.url, other.url]) as router:
        reply = await router.chat()
        assert reply.status == 503
        assert reply.json() == {"message": "the queue is full"}
        assert len(one.generated) + len(other.generated) == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_an_engine_killed_before_its_first_byte_is_replaced(engines, stream):
    one, other = engines
    one.behave = resets_at_once
    async with routing([one.url, other.url]) as router:
        replies = [await router.chat(stream=stream) for _ in range(4)]
        assert [reply.status for reply in replies] == [200] * 4


async def test_an_engine_killed_between_head_and_first_event_is_replaced(engines):
    one, other = engines

    async def behave(turn):
        await turn.send(SSE_HEAD)
        await asyncio.sleep(0.02)
        reset(turn.writer)
        return True

    one.behave = behave
    async with routing([one.url, other.url]) as router:
        replies = [await router.chat(stream=True) for _ in range(4)]
        assert all(reply.status == 200 and b"[DONE]" in reply.body for reply in replies)


async def test_an_engine_killed_inside_a_plain_answer_is_replaced(engines):
    one, other = engines
    one.behave = says(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{",
        close=True,
    )
    async with routing([one.url, other.url]) as router:
        replies = [await router.chat() for _ in range(4)]
        assert all(reply.json()["choices"] for reply in replies)


async def test_a_request_that_breaks_two_engines_is_not_given_a_third():
    async with FakeEngine() as a, FakeEngine() as b, FakeEngine() as c:
        engines = (a, b, c)
        for engine in engines:
            engine.behave = resets_at_once
        async with routing([engine.url for engine in engines]) as router:
            reply = await router.chat()
            assert reply.status == 502
            assert sum(len(engine.generated) for engine in engines) == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"\x16\x03\x01 what is this\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: nine\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
async def test_garbage_gives_502_with_json(answer):
    async with (
        FakeEngine(behave=says(answer, close=True)) as engine,
        routing([engine.url]) as router,
    ):
        reply = await router.chat()
        assert reply.status == 502
        assert reply.json()["error"]["code"] == "engine_broken"


async def closes_after(turn):
    await answers(turn)
    return True


async def closes_when_idle(turn):
    await answers(turn)
    asyncio.get_running_loop().call_later(0.05, turn.writer.close)


async def refuses_second_use(turn):
    if turn.used:
        turn.engine.seen.pop()
        reset(turn.writer)
        return True
    await answers(turn)
    return None


@pytest.mark.parametrize(
    ("behave", "pause_s"), [(closes_after, 0), (closes_when_idle, 0.05), (refuses_second_use, 0)]
)
async def test_a_connection_that_the_engine_has_closed_costs_no_request(behave, pause_s):
    async with FakeEngine(behave=behave) as engine, routing([engine.url]) as router:
        for i in range(25):
            assert (await router.chat(f"{i}")).status == 200
            await asyncio.sleep(pause_s)
        at_once = await asyncio.gather(*(router.chat(f"{i}") for i in range(25, 65)))
        assert [reply.status for reply in at_once] == [200] * 40
        asked = [request.json()["messages"][0]["content"] for request in engine.generated]
        assert sorted(asked, key=int) == [f"{i}" for i in range(65)]


async def test_requests_that_wait_for_a_frozen_engine_go_elsewhere(engines):
    one, other = engines
    one.behave = hangs
    async with routing([one.url, other.url]) as router:
        asking = [asyncio.create_task(router.chat(f"{i}")) for i in range(8)]
        await eventually(lambda: one.running and one.running + other.finished == 8)
        one.ready = (200, {})

        async def frozen(_request, reader, *_, **__):
            await reader.read()
            return True

        one._answer = frozen
        replies = await asyncio.gather(*asking)
        assert [reply.status for reply in replies] == [200] * 8
        assert (await router.states()).count("ready") == 1


async def test_an_engine_that_keeps_breaking_is_left_alone_for_a_while(engines):
    one, other = engines
    one.behave = resets_at_once
    async with routing([one.url, other.url], policy="round_robin") as router:
        for _ in range(10):
            await router.chat()
        assert len(one.generated) == 3
        assert [e["breaker"] for e in (await router.fleet())["engines"]] == ["open", "closed"]


async def test_a_lone_engine_is_tried_even_while_its_breaker_is_open():
    async with FakeEngine(behave=resets_at_once) as engine, routing([engine.url]) as router:
        for _ in range(4):
            assert (await router.chat()).status == 502
        engine.behave = answers
        assert (await router.chat()).status == 200
        assert [e["breaker"] for e in (await router.fleet())["engines"]] == ["closed"]


async def test_a_stock_engine_without_pic_routes_is_served_and_holds_nothing():
    async with FakeEngine(pic=False) as engine, routing([engine.url]) as router:
        assert (await router.chat()).status == 200
        assert await router.held() == [0]


async def test_an_engine_that_stops_being_ready_receives_nothing(engines):
    one, other = engines
    async with routing([one.url, other.url]) as router:
        one.ready = (503, {"reason": "drains"})
        await router.ready(1)
        for _ in range(4):
            await router.chat()
        assert not one.generated
        shown = {e["name"]: e["reason"] for e in (await router.fleet())["engines"]}
        assert "drains" in shown[one.url]


async def test_a_static_engine_may_appear_later(engines):
    one, _ = engines
    await one.stop()
    async with routing([one.url], ready=0) as router:
        assert (await router.chat()).status == 503
        async with FakeEngine(port=one.port):
            await router.ready(1)
            assert (await ask(router.url, "/generate", {"text": "x"})).status == 200
