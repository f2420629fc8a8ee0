"""Requests that have to wait: for room at busy engines, for engines that sleep."""

import asyncio
import contextlib
import json

import pytest

from hypic_router.guard import waiting
from hypic_router.settings import Admitting

from ...support.fake_engine import FakeEngine, answers, hangs, plain, says
from ...support.routers import chat, routing
from ...support.wire import Call, ask, eventually

CHAT = "/v1/chat/completions"
ASLEEP = (503, {"reason": "weights are loading"})


@contextlib.asynccontextmanager
async def sleeping(**limits):
    """An engine that is not ready, and a router that holds requests for it."""
    async with FakeEngine(ready=ASLEEP) as engine:
        admitting = Admitting(**{"hold_s": 20.0, **limits})
        async with routing([engine.url], ready=0, admitting=admitting) as router:
            yield engine, router


async def held(router, count):
    async def so():
        return await router.metric("hypic_router_held_requests") == count

    await eventually(so, what=f"{count} held")


@pytest.fixture
def quick_heartbeats(monkeypatch):
    monkeypatch.setattr("hypic_router.guard.admission.HEARTBEAT_S", 0.1)


async def test_a_request_is_held_while_engines_sleep_until_one_wakes_production_stack_1003():
    async with sleeping() as (engine, router):
        asking = asyncio.create_task(ask(router.url, CHAT, chat()))
        await held(router, 1)
        assert not asking.done()
        engine.ready = (200, {})
        assert (await asking).status == 200
        await held(router, 0)


@pytest.mark.usefixtures("quick_heartbeats")
async def test_a_held_stream_hears_comments_and_then_its_answer():
    async with sleeping() as (engine, router):
        async with Call(router.url, CHAT, chat(stream=True)) as call:
            assert (await call.head()).status == 200
            body = b""
            async for piece in call.pieces():
                body += piece
                if body.count(waiting.HEARTBEAT) == 2:
                    engine.ready = (200, {})
        events = [block for block in body.split(b"\n\n") if block and not block.startswith(b":")]
        assert call.reply.clean
        assert events[-1] == b"data: [DONE]"
        assert all(json.loads(event.removeprefix(b"data: ")) for event in events[:-1])
        assert len(events) == 4


@pytest.mark.usefixtures("quick_heartbeats")
async def test_a_held_stream_whose_engines_do_not_wake_ends_with_one_error():
    async with sleeping(hold_s=0.5) as (_, router):
        reply = await ask(router.url, CHAT, chat(stream=True))
        events = [one for one in reply.events() if not one.startswith(b":")]
        assert (reply.status, reply.clean, len(events)) == (200, True, 1)
        assert json.loads(events[0])["error"]["code"] == "asleep"
        assert await router.metric('hypic_router_errors_total{reason="asleep"}') == 1


@pytest.mark.usefixtures("quick_heartbeats")
async def test_an_engines_own_error_reaches_a_stream_that_has_waited():
    async with sleeping() as (engine, router):
        engine.behave = says(plain(400, {"error": {"message": "no way"}}))
        async with Call(router.url, CHAT, chat(stream=True)) as call:
            await call.head()
            engine.ready = (200, {})
            body = b"".join([piece async for piece in call.pieces()])
        assert call.reply.clean
        assert body.count(b"data: ") == 1
        assert b"no way" in body


async def test_a_request_that_is_not_streamed_gets_a_real_status_when_nobody_wakes():
    async with sleeping(hold_s=0.3) as (_, router):
        reply = await ask(router.url, CHAT, chat())
        assert reply.status == 503
        assert reply.json()["error"]["code"] == "asleep"
        assert "weights are loading" in reply.json()["error"]["message"]
        assert reply.header("retry-after")


async def test_beyond_the_bound_requests_are_refused_at_once():
    async with sleeping(most_held=2) as (engine, router):
        asking = [asyncio.create_task(ask(router.url, CHAT, chat())) for _ in range(2)]
        await held(router, 2)
        reply = await ask(router.url, CHAT, chat())
        assert (reply.status, reply.json()["error"]["code"]) == (503, "held_enough")
        assert reply.seconds < 1
        engine.ready = (200, {})
        assert {one.status for one in await asyncio.gather(*asking)} == {200}


async def test_a_caller_who_leaves_is_held_no_longer():
    async with sleeping() as (engine, router):
        async with Call(router.url, CHAT, chat()) as call:
            await held(router, 1)
            call.drop()
            await held(router, 0)
        engine.ready = (200, {})
        await router.ready(1)
        assert engine.generated == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/health", None, 200),
        ("GET", "/ready", None, 503),
        ("GET", "/v1/models", None, 200),
        ("GET", "/favicon.ico", None, 404),
        ("HEAD", CHAT, None, 405),
        ("OPTIONS", CHAT, None, 204),
        ("POST", CHAT, {**chat(), "model": "no-such-model"}, 404),
        ("POST", CHAT, [], 400),
        ("POST", CHAT, {"model": "tiny", "messages": []}, 400),
        ("POST", "/tokenize", {"prompt": "x"}, 503),
    ],
)
async def test_only_a_request_for_tokens_wakes_engines(method, path, body, status):
    async with sleeping() as (_, router):
        asking = asyncio.create_task(ask(router.url, path, body, method=method))
        reply = await asyncio.wait_for(asking, 5)
        assert reply.status == status
        assert await router.metric("hypic_router_held_requests") == 0
        if path == "/v1/models":
            assert reply.json()["data"][0]["id"] == "tiny"


async def test_requests_beyond_the_room_wait_in_their_order(engine):
    go = asyncio.Event()
    order = []

    async def one_at_a_time(turn):
        order.append(turn.request.json()["messages"][0]["content"])
        await go.wait()
        await answers(turn)

    engine.behave = one_at_a_time
    async with routing([engine.url], admitting=Admitting(requests_per_engine=1)) as router:
        asking = []
        for name in "abc":
            asking.append(asyncio.create_task(ask(router.url, CHAT, chat(name))))
            await eventually(lambda: order)
            waits = len(asking) - 1

            async def queued(waits=waits):
                return await router.metric("hypic_router_queued_requests") == waits

            await eventually(queued)
        assert engine.running == 1
        go.set()
        assert {reply.status for reply in await asyncio.gather(*asking)} == {200}
        assert order == ["a", "b", "c"]


async def test_a_full_queue_and_a_late_turn_are_said_with_when_to_come_back(engine):
    engine.behave = hangs
    admitting = Admitting(requests_per_engine=1, most_queued=1, queue_s=0.5)
    async with routing([engine.url], admitting=admitting) as router:
        asking = [asyncio.create_task(ask(router.url, CHAT, chat())) for _ in range(3)]
        done, pending = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED, timeout=5)
        full = done.pop().result()
        assert (full.status, full.json()["error"]["code"]) == (429, "queue_full")
        assert full.header("retry-after") == "2"
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED, timeout=5)
        late = done.pop().result()
        assert (late.status, late.json()["error"]["code"]) == (503, "queue_timeout")
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        await eventually(lambda: engine.running == 0)


async def test_who_leaves_the_queue_or_an_engine_makes_room(engine):
    engine.behave = hangs
    async with routing([engine.url], admitting=Admitting(requests_per_engine=1)) as router:
        async with (
            Call(router.url, CHAT, chat()) as first,
            Call(router.url, CHAT, chat()) as second,
        ):
            await eventually(lambda: engine.running == 1)

            async def queued():
                return await router.metric("hypic_router_queued_requests")

            await eventually(queued)
            third = asyncio.create_task(ask(router.url, CHAT, chat()))

            async def both_wait():
                return await queued() == 2

            await eventually(both_wait)
            second.drop()
            engine.behave = answers
            first.drop()
            assert (await third).status == 200
        assert await queued() == 0


async def test_more_engines_are_more_room():
    async with FakeEngine(behave=hangs) as one, FakeEngine(behave=hangs, ready=ASLEEP) as two:
        admitting = Admitting(requests_per_engine=1)
        async with routing([one.url, two.url], ready=1, admitting=admitting) as router:
            asking = [asyncio.create_task(ask(router.url, CHAT, chat(f"{i}"))) for i in range(2)]
            await eventually(lambda: one.running == 1)
            two.ready = (200, {})
            await eventually(lambda: two.running == 1)
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)


async def test_who_waits_when_the_router_ends_is_told():
    async with FakeEngine(ready=ASLEEP) as engine:
        admitting = Admitting(hold_s=60.0)
        async with routing([engine.url], ready=0, admitting=admitting, shutdown_s=0.1) as router:
            asking = asyncio.create_task(ask(router.url, CHAT, chat()))
            await held(router, 1)
            router.stop.set()
            reply = await asking
            assert (reply.status, reply.json()["error"]["code"]) == (503, "router_closing")
