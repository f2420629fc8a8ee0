"""Requests go where their segments are, as the engines' events say."""

import asyncio

import pytest

from hypic_engine.contract import events

from ...support.fake_engine import FakeEngine, hangs
from ...support.routers import routing
from ...support.wire import ask, eventually

SEP = "<<PIC_SEP>>"
DOCUMENTS = [
    f"Harbour note {d}. " + f"Berth {d} takes hulls up to {40 + d} metres. " * 40 for d in range(4)
]


def prompt(order, question="Which berth?"):
    return SEP.join(["Answer from the notes.", *(DOCUMENTS[d] for d in order), question])


@pytest.fixture
async def engines():
    async with FakeEngine() as a, FakeEngine() as b, FakeEngine() as c:
        yield a, b, c


async def generate(router, text, **more):
    body = {"text": text, "sampling_params": {"max_new_tokens": 4}, **more}
    return await ask(router.url, "/generate", body, headers=("x-hypic-explain: 1",))


async def holds(router, *counts):
    async def so():
        return await router.held() == list(counts)

    await eventually(so, what=f"segments held {counts}")


async def test_a_request_goes_to_the_engine_that_holds_most_of_it(engines):
    a, b, _c = engines
    a.store(DOCUMENTS[0])
    b.store(*DOCUMENTS[1:4])
    async with routing([engine.url for engine in engines]) as router:
        await holds(router, 1, 3, 0)
        for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]):
            reply = await generate(router, prompt(order))
            assert reply.header("x-hypic-engine") == b.url
            assert reply.header("x-hypic-choice").startswith("held: holds ")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": prompt([0, 1])}),
        ("/v1/completions", {"prompt": [prompt([0]), prompt([1])]}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": prompt([0, 1])}]}),
    ],
)
async def test_segments_are_found_on_every_route_and_in_every_form(engines, path, body):
    _, b, _ = engines
    b.store(*DOCUMENTS)
    async with routing([engine.url for engine in engines]) as router:
        await holds(router, 0, 4, 0)
        for _ in range(3):
            reply = await ask(router.url, path, body, headers=("x-hypic-explain: 1",))
            assert reply.header("x-hypic-engine") == b.url


async def test_documents_warm_up_and_are_then_found_in_any_order(engines):
    async with routing([engine.url for engine in engines]) as router:
        first = await generate(router, prompt([0, 1, 2, 3]))
        home = first.header("x-hypic-engine")
        index = [engine.url for engine in engines].index(home)
        await holds(router, *(5 if i == index else 0 for i in range(3)))
        for order in ([3, 1, 0, 2], [2, 3, 1, 0]):
            reply = await generate(router, prompt(order))
            assert reply.header("x-hypic-engine") == home
            assert reply.json()["meta_info"]["cached_tokens"] > 4_000
        assert await router.metric("hypic_router_predicted_tokens_total") > 8_000
        assert await router.metric("hypic_router_actual_tokens_total") > 8_000


async def test_what_an_engine_evicts_is_no_longer_counted(engines):
    a, b, _c = engines
    a.store(*DOCUMENTS[:2])
    b.store(DOCUMENTS[0])
    async with routing([engine.url for engine in engines]) as router:
        await holds(router, 2, 1, 0)
        a.evict(DOCUMENTS[0])
        a.evict(DOCUMENTS[1])
        await holds(router, 0, 1, 0)
        reply = await generate(router, prompt([0]))
        assert reply.header("x-hypic-engine") == b.url


async def test_lost_events_are_made_good_by_a_snapshot(engines):
    a, *_ = engines
    async with routing([a.url]) as router:
        await eventually(lambda: a.followers)
        a.seq += 3
        a.store(*DOCUMENTS)
        await holds(router, 4)
        assert await router.metric("hypic_router_resyncs_total") == 2


async def test_doubled_and_old_events_change_nothing(engines):
    a, *_ = engines
    async with routing([a.url]) as router:
        await eventually(lambda: a.followers)
        a.store(*DOCUMENTS[:3])
        a.evict(DOCUMENTS[0])
        await holds(router, 2)
        a.push(b"".join(events.encode(line) for line in a.lines))
        a.store(DOCUMENTS[3])
        await holds(router, 3)
        assert await router.metric("hypic_router_resyncs_total") == 1


async def test_a_follower_goes_on_where_a_broken_stream_ended(engines):
    a, *_ = engines
    async with routing([a.url]) as router:
        a.store(*DOCUMENTS[:2])
        await holds(router, 2)
        a.hang_up()
        a.store(DOCUMENTS[2])
        await holds(router, 3)
        assert await router.metric("hypic_router_resyncs_total") == 1


async def test_a_follower_that_comes_back_too_late_reads_the_snapshot(engines):
    a, *_ = engines
    async with routing([a.url]) as router:
        a.store(*DOCUMENTS[:2])
        await holds(router, 2)
        a.forgets_events_before = 3
        a.hang_up()
        a.store(*DOCUMENTS)
        await holds(router, 4)
        assert await router.metric("hypic_router_resyncs_total") >= 2


async def test_another_epoch_clears_what_was_held(engines):
    a, *_ = engines
    async with routing([a.url]) as router:
        a.store(*DOCUMENTS)
        await holds(router, 4)
        a.clear("e2")
        await holds(router, 0)
        a.store(DOCUMENTS[0])
        await holds(router, 1)


async def test_lines_outside_the_contract_do_no_harm(engines):
    a, *_ = engines
    async with routing([a.url]) as router:
        a.store(DOCUMENTS[0])
        await holds(router, 1)
        a.push(b"what is this\n")
        a.store(DOCUMENTS[1])
        await holds(router, 2)
        assert (await generate(router, prompt([0]))).status == 200


async def test_an_engine_that_is_gone_holds_nothing_when_it_comes_back(engines):
    a, *_ = engines
    async with routing([a.url]) as router:
        a.store(*DOCUMENTS)
        await holds(router, 4)
        await a.stop()
        async with FakeEngine(port=a.port, epoch="e9"):
            await holds(router, 0)
            await router.ready(1)


@pytest.mark.parametrize("orders", [[[0, 1, 2, 3]], [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]]])
async def test_a_burst_for_documents_that_one_engine_holds_spreads(orders):
    async with FakeEngine() as a, FakeEngine() as b, FakeEngine() as c, FakeEngine() as d:
        engines = (a, b, c, d)
        a.store("Answer from the notes.", *DOCUMENTS)
        go = asyncio.Event()

        async def waits(turn):
            await go.wait()
            await FakeEngine.behave(turn)

        for engine in engines:
            engine.behave = waits
        async with routing([engine.url for engine in engines]) as router:
            await holds(router, 5, 0, 0, 0)
            asking = [
                asyncio.create_task(
                    ask(
                        router.url,
                        "/generate",
                        {
                            "text": prompt(orders[i % len(orders)], f"Question {i}?"),
                            "sampling_params": {"max_new_tokens": 32},
                        },
                    )
                )
                for i in range(64)
            ]
            await eventually(lambda: sum(engine.running for engine in engines) == 64)
            counts = [engine.running for engine in engines]
            go.set()
            assert {reply.status for reply in await asyncio.gather(*asking)} == {200}
            assert max(counts) <= 32
            assert min(counts) >= 4


@pytest.mark.parametrize("policy", ["segment", "least_load", "round_robin"])
async def test_a_burst_of_plain_prompts_over_equal_engines_is_even(engines, policy):
    for engine in engines:
        engine.behave = hangs
    async with routing([engine.url for engine in engines], policy=policy) as router:
        asking = [asyncio.create_task(router.chat("Say hello.")) for _ in range(30)]
        await eventually(lambda: sum(engine.running for engine in engines) == 30)
        counts = sorted(engine.running for engine in engines)
        # Equal beginnings stay together for two requests more than elsewhere.
        assert counts == [10, 10, 10] or (policy == "segment" and counts[-1] <= counts[0] + 3)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


async def test_prefix_hash_keeps_a_conversation_on_one_engine(engines):
    async with routing([engine.url for engine in engines], policy="prefix_hash") as router:
        homes = {
            (await router.chat("the same beginning")).header("x-hypic-engine") for _ in range(5)
        }
        assert len(homes) == 1
        many = {(await router.chat(f"{i}")).header("x-hypic-engine") for i in range(30)}
        assert len(many) == 3
