"""Prefill and decode apart: both are asked at once, and fail as one."""

import asyncio
import contextlib
import json
import time

import pytest

from hypic_router.settings import Limits

from ...support.fake_engine import (
    END,
    SSE_HEAD,
    FakeEngine,
    breaks_off,
    event,
    plain,
    resets_at_once,
    says,
    streams_for_ever,
    token,
)
from ...support.fake_pair import Rooms
from ...support.routers import chat, routing
from ...support.wire import Call, ask, eventually

CHAT = "/v1/chat/completions"
TOO_LONG = {"object": "error", "message": "70001 tokens do not fit into 65536", "code": 400}


@contextlib.asynccontextmanager
async def pairs(prefill=1, decode=1, **more):
    """So many engines of either role, and a router before them."""
    rooms = Rooms()
    async with contextlib.AsyncExitStack() as stack:
        ones = [
            await stack.enter_async_context(FakeEngine(behave=rooms.prefill))
            for _ in range(prefill)
        ]
        twos = [
            await stack.enter_async_context(FakeEngine(behave=rooms.decode)) for _ in range(decode)
        ]
        router = await stack.enter_async_context(
            routing(
                [],
                ready=prefill + decode,
                prefill=tuple(f"{one.url}#{7000 + i}" for i, one in enumerate(ones)),
                decode=tuple(two.url for two in twos),
                **more,
            )
        )
        yield router, rooms, ones, twos


@pytest.mark.parametrize("stream", [True, False])
async def test_both_engines_get_the_same_body_and_decode_answers(stream):
    async with pairs() as (router, _, (one,), (two,)):
        reply = await router.chat(stream=stream, bootstrap_room=7)
        assert (reply.status, reply.clean) == (200, True)
        sent, same = one.generated[0].body, two.generated[0].body
        assert sent == same
        body = json.loads(sent)
        assert body["messages"] == chat()["messages"]
        assert (body["bootstrap_host"], body["bootstrap_port"]) == ("127.0.0.1", 7000)
        assert body["bootstrap_room"] != 7
        assert reply.header("x-hypic-engine") == f"{one.url}+{two.url}"


async def test_every_request_has_a_room_of_its_own():
    async with pairs() as (router, rooms, _, __):
        replies = await asyncio.gather(*(router.chat(f"{i}") for i in range(40)))
        assert [reply.status for reply in replies] == [200] * 40
        assert len({room for _, room in rooms.uses}) == 40
        assert set(rooms.uses.values()) == {1}
        shown = (await router.fleet())["engines"]
        assert [(one["requests"], one["work_tokens"]) for one in shown] == [(0, 0), (0, 0)]


async def test_requests_spread_over_decode_engines():
    async with pairs(decode=3) as (router, _, __, twos):
        await asyncio.gather(*(router.chat(f"{i}") for i in range(30)))
        assert all(5 <= len(two.generated) <= 15 for two in twos)


@pytest.mark.parametrize("stream", [True, False])
async def test_what_prefill_refuses_is_the_answer_at_once_and_decode_is_let_go(stream):
    async with pairs(prefill=2) as (router, rooms, ones, (two,)):
        for one in ones:
            one.behave = says(plain(400, TOO_LONG))
        reply = await router.chat(stream=stream)
        assert (reply.status, reply.json()) == (400, TOO_LONG)
        assert reply.header("content-type") == "application/json"
        assert reply.seconds < 2
        assert sum(len(one.generated) for one in ones) == 1
        await eventually(lambda: two.running == 0 and rooms.left, within_s=2)


async def test_what_decode_refuses_is_the_answer_at_once_and_prefill_is_let_go():
    async with pairs() as (router, rooms, (one,), (two,)):
        one.behave, two.behave = rooms.held, says(plain(400, TOO_LONG))
        reply = await router.chat()
        assert (reply.status, reply.json()) == (400, TOO_LONG)
        await eventually(lambda: one.running == 0 and rooms.left, within_s=2)


async def test_an_overloaded_prefill_is_believed():
    async with pairs() as (router, _, (one,), (two,)):
        one.behave = says(plain(503, {"message": "the queue is full"}))
        reply = await router.chat(stream=True)
        assert (reply.status, reply.json()) == (503, {"message": "the queue is full"})
        await eventually(lambda: two.running == 0)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("role", ["prefill", "decode"])
async def test_a_leg_that_is_killed_is_replaced_in_a_room_of_its_own(role, stream):
    async with pairs(2, 2) as (router, rooms, ones, twos):
        broken = (ones if role == "prefill" else twos)[0]
        broken.behave = resets_at_once
        replies = [await router.chat(f"{i}", stream=stream) for i in range(6)]
        assert [(reply.status, reply.clean) for reply in replies] == [(200, True)] * 6
        assert broken.generated
        assert set(rooms.uses.values()) == {1}
        await eventually(lambda: not any(one.running for one in (*ones, *twos)))


@pytest.mark.parametrize("role", ["prefill", "decode"])
async def test_a_leg_that_cannot_be_reached_costs_seconds_at_most(role):
    async with pairs() as (router, _, ones, twos):
        gone, other = (ones[0], twos[0]) if role == "prefill" else (twos[0], ones[0])
        await gone.stop()
        reply = await router.chat(stream=True)
        assert reply.status == 503
        assert reply.json()["error"]["code"] in ("engine_unreachable", "no_engine")
        assert reply.seconds < 2
        await eventually(lambda: other.running == 0)


@pytest.mark.parametrize("role", ["prefill", "decode"])
async def test_a_failed_transfer_is_tried_with_another_pair(role):
    async with pairs(2, 2) as (router, _, ones, twos):
        failed = plain(500, {"message": "KVTransferError: session blacklisted"})
        (ones if role == "prefill" else twos)[0].behave = says(failed)
        replies = [await router.chat(f"{i}") for i in range(6)]
        assert [reply.status for reply in replies] == [200] * 6
        assert await router.metric('hypic_router_retries_total{reason="pair_failed"}') > 0


async def test_an_error_as_the_first_event_of_decode_is_tried_with_another_pair():
    async with pairs(1, 2) as (router, _, __, twos):
        wrong = event({"error": {"message": "Aborted by AbortReq.", "code": 500}})
        twos[0].behave = says(SSE_HEAD + wrong, close=True)
        replies = [await router.chat(f"{i}", stream=True) for i in range(6)]
        assert all(reply.body.endswith(b"data: [DONE]\n\n") for reply in replies)
        assert not any(b'"error"' in reply.body for reply in replies)


async def test_without_another_pair_the_client_hears_what_the_engine_said():
    async with pairs() as (router, _, (one,), __):
        one.behave = says(plain(500, {"message": "KVTransferError: decode is gone"}))
        reply = await router.chat()
        assert (reply.status, reply.json()["error"]["code"]) == (502, "pair_failed")
        assert "decode is gone" in reply.json()["error"]["message"]


async def test_a_prompt_that_never_arrives_at_decode_is_given_up_after_the_limit():
    async with pairs(limits=Limits(transfer_s=0.3)) as (router, rooms, _, (two,)):
        two.behave = rooms.held
        reply = await router.chat(stream=True)
        assert reply.status == 502
        assert "within 0.3 s" in reply.json()["error"]["message"]
        assert reply.seconds < 2
        await eventually(lambda: two.running == 0)


async def test_a_stream_outlives_its_prefill():
    async with pairs() as (router, rooms, (one,), (two,)):
        go = asyncio.Event()

        async def streams(turn):
            await turn.send(SSE_HEAD, event(token("a")))
            await go.wait()
            await turn.send(event(token("b", "stop")), event(b"[DONE]"), END)

        one.behave, two.behave = rooms.held, streams
        async with Call(router.url, CHAT, chat(stream=True)) as call:
            await call.head()
            pieces = call.pieces()
            await anext(pieces)
            await one.stop()
            go.set()
            rest = b"".join([piece async for piece in pieces])
        assert rest.endswith(b"data: [DONE]\n\n")
        assert b'"error"' not in rest


@pytest.mark.parametrize("how", ["reset", "half_event"])
async def test_a_decode_engine_killed_mid_stream_gives_one_error_event(how):
    async with pairs(1, 2) as (router, _, __, twos):
        for two in twos:
            two.behave = breaks_off(how)
        reply = await router.chat(stream=True)
        assert [b'"error"' in one for one in reply.events()] == [False, False, True]
        assert reply.clean
        assert sum(len(two.generated) for two in twos) == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_frees_both_engines_within_100_ms(stream):
    async with pairs() as (router, rooms, (one,), (two,)):
        one.behave = rooms.held
        async with Call(router.url, CHAT, chat(stream=stream, n=3)) as call:
            await eventually(lambda: one.running and two.running)
            call.drop()
            left_s = time.monotonic()
            await eventually(lambda: not one.running and not two.running)
            assert time.monotonic() - left_s < 0.1


async def test_a_client_that_leaves_a_stream_frees_decode():
    async with pairs() as (router, _, __, (two,)):
        two.behave = streams_for_ever
        async with Call(router.url, CHAT, chat(stream=True)) as call:
            await call.head()
            await anext(call.pieces())
            call.drop()
            await eventually(lambda: two.running == 0, within_s=2)


async def test_a_frozen_prefill_engine_loses_its_requests_to_another():
    async with pairs(2, 1) as (router, rooms, ones, _):
        frozen = ones[0]
        frozen.behave = rooms.held
        asking = [asyncio.create_task(router.chat(f"{i}")) for i in range(4)]
        await eventually(lambda: frozen.running)

        async def silent(_request, reader, *_, **__):
            await reader.read()
            return True

        frozen._answer = silent
        replies = await asyncio.gather(*asking)
        assert [reply.status for reply in replies] == [200] * 4


async def test_a_body_that_can_be_given_no_room_is_refused_and_counted_nowhere():
    async with pairs() as (router, _, __, ___):
        raw = json.dumps({"text": "x"}).encode("utf-16")
        reply = await ask(router.url, "/generate", raw=raw)
        assert (reply.status, reply.json()["error"]["param"]) == (400, "body")
        assert [one["requests"] for one in (await router.fleet())["engines"]] == [0, 0]


async def test_tokenizing_needs_one_engine_only():
    async with pairs() as (router, _, (one,), (two,)):
        reply = await ask(router.url, "/tokenize", {"prompt": "abc"})
        assert (reply.status, reply.json()["count"]) == (200, 3)
        assert "bootstrap_room" not in next(r for r in one.seen if r.path == "/tokenize").json()
        assert not [r for r in two.seen if r.path == "/tokenize"]


async def test_prefill_without_decode_is_nobody_to_ask():
    async with pairs() as (router, _, __, (two,)):
        two.ready = (503, {"reason": "weights are loading"})
        await router.ready(1)
        reply = await router.chat()
        assert reply.status == 503
        assert "weights are loading" in reply.json()["error"]["message"]
