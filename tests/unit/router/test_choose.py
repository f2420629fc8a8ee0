from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypic_engine.contract.events import Item, Page
from hypic_router.core import breaker as breakers
from hypic_router.core.caches.heat import Heat, after_request
from hypic_router.core.caches.pressure import Pressure
from hypic_router.core.caches.residency import NOTHING, Held, with_page
from hypic_router.core.choose import choose, nobody
from hypic_router.core.cut import Segment
from hypic_router.core.offer import sizes
from hypic_router.core.prompt import Prompt
from hypic_router.core.score import POLICIES
from hypic_router.core.workers import Address, Fleet, Health, Load, Rates, State, Worker

READY = Health(State.READY, "")
DOCS = {"a": 1_000, "b": 2_000, "c": 3_000}


def holding(*digests):
    items = tuple(Item(d, (d,), DOCS[d], 1) for d in digests)
    return with_page(NOTHING, Page("e", 0, items, None))


def worker(name, *digests, tokens=0.0, requests=0, **more):
    load = Load(requests or (1 if tokens else 0), tokens)
    fields = {"health": READY, "residency": holding(*digests), "load": load, **more}
    return Worker(Address(name, f"http://{name}"), **fields)


def asking(*digests, query_bytes=40, **more):
    segments = tuple(Segment(d, n_bytes=4 * DOCS.get(d, 500)) for d in digests)
    n_bytes = query_bytes + sum(segment.n_bytes for segment in segments)
    return Prompt(segments, n_bytes, output_tokens=4, **more)


def chosen(prompt, workers, policy="segment", turn=0, **more):
    return choose(prompt, Fleet(tuple(workers)), POLICIES[policy], turn=turn, now_s=100.0, **more)


@pytest.mark.parametrize("turn", range(4))
def test_the_engine_that_holds_most_tokens_is_chosen(turn):
    workers = [
        worker("one", "a", "b"),
        worker("two", "c"),
        worker("three"),
        worker("four", "c", "a"),
    ]
    choice = chosen(asking("a", "b", "c"), workers, turn=turn)
    assert choice.worker.at.name == "four"
    assert choice.label == "held"
    assert "holds 2 of 3 segments, 4000 of about 6010 tokens" in choice.reason
    assert choice.cold_tokens == pytest.approx(2_010)


def test_without_a_prompt_the_least_loaded_is_chosen():
    workers = [worker("one", tokens=50), worker("two", tokens=10), worker("three", tokens=900)]
    choice = chosen(asking(), workers)
    assert (choice.worker.at.name, choice.label) == ("two", "least_load")


def test_equal_beginnings_without_segments_stay_together_until_there_is_much_to_do():
    idle = [worker(f"{i}") for i in range(4)]
    homes = {chosen(asking(prefix="p"), idle, turn=turn).worker.at.name for turn in range(8)}
    assert len(homes) == 1
    busy = [replace(w, load=Load(9, 9_000.0)) if w.at.name in homes else w for w in idle]
    choice = chosen(asking(prefix="p"), busy)
    assert choice.worker.at.name not in homes
    assert choice.label == "prefix"


def test_a_busy_holder_is_passed_by_when_waiting_costs_twice_as_much_as_filling():
    near, far = worker("holder", "a", tokens=1_900), worker("idle")
    assert chosen(asking("a"), [near, far]).worker.at.name == "holder"
    busier = replace(near, load=Load(3, 2_100.0))
    choice = chosen(asking("a"), [busier, far])
    assert (choice.worker.at.name, choice.label) == ("idle", "copied")
    assert "gets copies of 1 segments whose holders have more to do" in choice.reason


def test_a_smaller_holder_with_less_to_do_gets_copies_too():
    workers = [worker("most", "a", "b", tokens=9_000), worker("some", "a")]
    choice = chosen(asking("a", "b"), workers)
    assert (choice.worker.at.name, choice.label) == ("some", "copied")


def test_segments_that_an_engine_is_filling_count_as_held():
    filling = worker("one", load=Load().with_work(10.0, ["a"]))
    choice = chosen(asking("a"), [filling, worker("two")])
    assert choice.worker.at.name == "one"


@pytest.mark.parametrize("policy", ["segment", "least_load", "round_robin"])
def test_equal_engines_take_turns(policy):
    workers = [worker(f"{i}") for i in range(4)]
    names = Counter(chosen(asking(), workers, policy, turn).worker.at.name for turn in range(8))
    assert set(names.values()) == {2}


def test_engines_that_are_not_ready_receive_nothing():
    workers = [
        worker("unready", "a", health=Health()),
        worker("late", "a", health=Health(State.LATE, "silent")),
        replace(worker("drains", "a"), at=Address("drains", "u", state=State.DRAINING, reason="r")),
        worker("ready"),
    ]
    assert chosen(asking("a"), workers).worker.at.name == "ready"
    assert chosen(asking("a"), workers, tried=["ready"]).worker.at.name == "late"
    assert chosen(asking("a"), workers, tried=["ready", "late"]) is None


def test_an_open_breaker_is_respected_unless_all_are_open():
    broken = replace(worker("broken", "a"), breaker=breakers.Breaker(3, 1, until_s=200.0))
    assert chosen(asking("a"), [broken, worker("fine")]).worker.at.name == "fine"
    assert chosen(asking("a"), [broken]).worker.at.name == "broken"


def test_what_is_missing_is_named():
    assert "no engine is known" in nobody(Fleet(), ())
    workers = (
        worker("one", health=Health(State.UNREADY, "weights are loading")),
        replace(worker("two"), at=Address("two", "u", state=State.DRAINING, reason="terminating")),
        worker("three"),
    )
    words = nobody(Fleet(workers), ["three"])
    assert "none of 3 engines" in words
    assert "one is unready: weights are loading" in words
    assert "two is draining: terminating" in words
    assert "three failed this request" in words


def test_sizes_are_exact_where_an_engine_has_told_them_and_guessed_elsewhere():
    size = sizes(asking("a", "x"), [{}, {"a": Held("a", 1_000)}], Rates(bytes_per_token=2.0))
    assert size.segments == {"a": 1_000, "x": 1_000.0}
    assert size.total == 2_020
    assert (size.measured_bytes, size.measured_tokens) == (4_000, 1_000)


def test_ids_count_as_they_are():
    prompt = Prompt((Segment("i", n_ids=7),), n_ids=30)
    size = sizes(prompt, [], Rates())
    assert (size.total, dict(size.segments)) == (30, {"i": 7})


def test_a_segment_that_is_sent_twice_is_counted_twice_and_measured_once():
    size = sizes(asking("a", "a", query_bytes=0), [{"a": Held("a", 1_000)}], Rates())
    assert size.total == 2_000
    assert size.measured_tokens == 1_000


def test_prefix_hash_moves_only_the_prompts_of_an_engine_that_leaves():
    workers = [worker(f"{i}") for i in range(5)]
    prompts = [asking(prefix=f"p{i}") for i in range(60)]
    before = [chosen(p, workers, "prefix_hash").worker.at.name for p in prompts]
    after = [chosen(p, workers[:-1], "prefix_hash").worker.at.name for p in prompts]
    assert len(set(before)) == 5
    assert all(a == b for a, b in zip(after, before, strict=True) if b != "4")


def test_prefix_hash_gives_up_its_engine_when_another_has_much_less_to_do():
    home = chosen(asking(prefix="p"), [worker("0"), worker("1")], "prefix_hash").worker.at.name
    workers = [worker(n, tokens=10_000.0 if n == home else 0.0) for n in ("0", "1")]
    choice = chosen(asking(prefix="p"), workers, "prefix_hash")
    assert choice.worker.at.name != home
    assert choice.label == "prefix"


LOADS = st.lists(st.floats(0, 1e6), min_size=1, max_size=6)


@given(LOADS, st.integers(0, 100), st.sampled_from(sorted(POLICIES)))
def test_every_policy_chooses_one_of_the_engines_and_says_why(loads, turn, policy):
    workers = [worker(f"{i}", tokens=load) for i, load in enumerate(loads)]
    choice = chosen(asking("a"), workers, policy, turn)
    assert choice.worker in workers
    assert choice.reason
    assert choice.work_tokens > 0
    if policy in ("segment", "least_load"):
        assert choice.worker.load.tokens <= min(loads) + 1e-2


@given(st.integers(2, 8), st.integers(8, 64))
def test_a_burst_over_equal_engines_gives_none_more_than_twice_the_mean(n_engines, n_requests):
    workers = {
        f"{i}": worker(f"{i}", *(("a", "b", "c") if i == 0 else ())) for i in range(n_engines)
    }
    prompt, heat = replace(asking("a", "b", "c"), output_tokens=32), Heat()
    for turn in range(n_requests):
        fleet = Fleet(tuple(workers.values()), heat=heat)
        choice = choose(prompt, fleet, POLICIES["segment"], turn=turn, now_s=1.0)
        heat = after_request(heat, choice.size.segments, 1.0)
        name = choice.worker.at.name
        load = choice.worker.load.with_work(choice.work_tokens, choice.size.segments)
        workers[name] = replace(workers[name], load=load)
    most = max(w.load.requests for w in workers.values())
    # Until each engine has its copies, the first one has done twice the work of filling them.
    assert most <= max(2 * n_requests / n_engines, 9)


def test_a_faster_engine_is_preferred_only_when_it_is_notably_faster():
    slow, fast = worker("slow", fill_tokens_per_s=8_000.0), worker("fast")
    for speed, expected in ((9_000.0, {"slow", "fast"}), (16_000.0, {"fast"})):
        workers = [slow, replace(fast, fill_tokens_per_s=speed)]
        names = {chosen(asking("a"), workers, turn=turn).worker.at.name for turn in range(4)}
        assert names == expected


def test_what_lies_in_host_memory_costs_its_way_back():
    item = Item("a", ("a",), DOCS["a"], 4_000_000_000, "host")
    far = replace(worker("far"), residency=with_page(NOTHING, Page("e", 0, (item,), None)))
    assert chosen(asking("a"), [far, worker("near", "a")], turn=0).worker.at.name == "near"


def test_an_engine_that_throws_out_more_than_others_is_given_less_to_fill():
    workers = [worker("churns"), worker("keeps")]
    pressure = Pressure(relative={"churns": 1.5, "keeps": 0.5})
    fleet = Fleet(tuple(workers), pressure=pressure)
    names = {
        choose(asking("a"), fleet, POLICIES["segment"], turn=turn, now_s=0.0).worker.at.name
        for turn in range(4)
    }
    assert names == {"keeps"}


def heated(share_of_a):
    heat = Heat()
    for i in range(1_000):
        heat = after_request(heat, ["a"] if i < 1_000 * share_of_a else ["other"], 1.0)
    return heat


def test_a_hot_segment_is_copied_sooner_than_waiting_would_say():
    holder, idle = worker("holder", "a", tokens=600), [worker(f"{i}") for i in range(3)]
    for share, expected in ((0.9, "copied"), (0.01, "held")):
        fleet = Fleet((holder, *idle), heat=heated(share))
        choice = choose(asking("a"), fleet, POLICIES["segment"], turn=0, now_s=1.0)
        assert choice.label == expected


def test_a_segment_is_not_copied_beyond_its_share_of_the_traffic():
    holders = [worker(f"holder-{i}", "a", tokens=2_500) for i in range(2)]
    idle = [worker(f"{i}") for i in range(6)]
    cold, hot = (
        choose(
            asking("a"),
            Fleet((*holders, *idle), heat=heated(share)),
            POLICIES["segment"],
            turn=0,
            now_s=1.0,
        )
        for share in (0.01, 0.9)
    )
    assert (cold.label, hot.label) == ("bounded", "copied")
    assert "copies that are not worth it" in cold.reason


def test_a_holder_that_is_very_far_behind_does_not_keep_a_request():
    holders = [worker(f"holder-{i}", "a", tokens=9_000) for i in range(2)]
    fleet = Fleet((*holders, *(worker(f"{i}") for i in range(6))), heat=heated(0.01))
    assert choose(asking("a"), fleet, POLICIES["segment"], turn=0, now_s=1.0).label == "copied"


def test_an_engine_that_has_as_much_as_it_may_is_asked_only_where_all_have():
    full, free = worker("full", "a", requests=2), worker("free")
    fleet = Fleet((full, free), most_requests=2)
    assert choose(asking("a"), fleet, POLICIES["segment"], turn=0, now_s=0.0).worker is free
    fleet = Fleet((full,), most_requests=2)
    assert choose(asking("a"), fleet, POLICIES["segment"], turn=0, now_s=0.0).worker is full
