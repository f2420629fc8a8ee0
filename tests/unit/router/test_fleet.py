from dataclasses import replace

import pytest

from hypic_engine.contract.events import Item, Page, Removed
from hypic_router.core.caches.residency import NOTHING, after, with_page
from hypic_router.core.choose import choose
from hypic_router.core.cut import Segment
from hypic_router.core.prompt import Prompt
from hypic_router.core.score import POLICIES
from hypic_router.core.workers import Address, Health, State
from hypic_router.fleet import FleetStore
from hypic_router.show.table import published

ONE, TWO = Address("one", "http://one", "u1"), Address("two", "http://two", "u2")
PROMPT = Prompt((Segment("d", n_bytes=4_000),), n_bytes=4_000, output_tokens=1, stream=True)


class Clock:
    now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(clock):
    store = FleetStore(clock)
    store.discovered([ONE, TWO])
    for at in (ONE, TWO):
        store.probed(at, Health(State.READY, ""))
    return store


def send(store, prompt=PROMPT):
    choice = choose(prompt, store.snapshot, POLICIES["segment"], turn=0, now_s=0.0)
    assert choice is not None
    return store.dispatched(choice)


def worker(store, name):
    return next(w for w in store.snapshot.workers if w.at.name == name)


def test_a_snapshot_does_not_change_under_its_reader(store):
    before = store.snapshot
    assert store.snapshot is before
    send(store)
    assert [w.load.requests for w in before.workers] == [0, 0]
    assert [w.load.requests for w in store.snapshot.workers] == [1, 0]


def test_discovery_says_who_came_and_who_left(store):
    new = Address("three", "http://three")
    assert store.discovered([TWO, new]) == ([new], [ONE])
    assert [w.at.name for w in store.snapshot.workers] == ["two", "three"]


def test_a_change_of_state_keeps_what_is_known(store):
    send(store)
    assert store.discovered([replace(ONE, state=State.DRAINING, reason="r"), TWO]) == ([], [])
    assert worker(store, "one").state is State.DRAINING
    assert worker(store, "one").load.requests == 1


def test_a_successor_of_the_same_name_starts_anew_and_hears_nothing_of_the_old_one(store):
    ticket = send(store)
    successor = replace(ONE, uid="u9")
    assert store.discovered([successor, TWO]) == ([successor], [ONE])
    store.holds(ONE, with_page(NOTHING, Page("e", 1, (Item("d", ("d",), 9, 9),), None)))
    store.ended(ticket, failed=True)
    assert worker(store, "one") == replace(
        worker(store, "one"), load=type(ticket.choice.worker.load)()
    )
    assert worker(store, "one").residency is NOTHING
    assert worker(store, "one").breaker.failures == 0


def test_requests_that_wait_for_a_lost_engine_are_told_and_others_are_not(store):
    told = []
    waiting, answered = send(store), send(store)
    for ticket in (waiting, answered):
        ticket.on_lost = lambda reason, ticket=ticket: told.append((ticket, reason.code))
    store.answered(answered)
    store.lost(waiting.at)
    assert told == [(waiting, "engine_lost")]
    store.lost(Address("unknown", "x"))
    told.clear()
    store.abandon()
    assert {code for _, code in told} == {"router_closing"}
    assert len(told) == 2


def test_work_is_counted_from_dispatch_to_the_end(store):
    ticket = send(store)
    cold, output = ticket.choice.cold_tokens, ticket.choice.size.output
    assert worker(store, "one").load.tokens == cold + output
    store.answered(ticket)
    assert worker(store, "one").load.tokens == output
    store.ended(ticket)
    assert worker(store, "one").load.requests == 0
    assert worker(store, "one").load.tokens == 0


def test_failures_open_the_breaker_and_an_answer_closes_it(store, clock):
    for _ in range(3):
        store.discovered([ONE])
        store.ended(send(store), failed=True)
    assert published(store.snapshot, clock())[0]["breaker"] == "open"
    clock.now_s = 60.0
    trial = send(store)
    assert worker(store, "one").breaker.trying
    store.ended(trial)
    assert not worker(store, "one").breaker.trying
    trial = send(store)
    store.answered(trial)
    assert published(store.snapshot, clock())[0]["breaker"] == "closed"


def test_bytes_in_a_token_are_learned_from_what_engines_hold(store):
    item = Item("d", ("d",), 4_000, 1)
    store.holds(ONE, with_page(NOTHING, Page("e", 1, (item,), None)))
    before = store.snapshot.rates.bytes_per_token
    for _ in range(60):
        store.ended(send(store))
    assert before == 4.0
    assert store.snapshot.rates.bytes_per_token == pytest.approx(1.0, abs=0.05)


def test_speed_is_learned_from_streams_that_had_their_engine_to_themselves(store, clock):
    before = store.snapshot.rates.fill_tokens_per_s
    for _ in range(60):
        ticket = send(store)
        clock.now_s += 1.0
        store.answered(ticket)
        store.ended(ticket)
    learned = store.snapshot.rates.fill_tokens_per_s
    assert learned == pytest.approx(1_000, rel=0.05)
    assert before == 8_000
    first, second = send(store), send(store)
    third = send(store)
    clock.now_s += 9.0
    store.answered(third)
    assert store.snapshot.rates.fill_tokens_per_s == learned
    assert first.alone
    assert second.alone
    assert not third.alone


def test_the_fleet_is_shown_with_its_reasons(store):
    store.probed(ONE, Health(State.UNREADY, "weights are loading"))
    shown = published(store.snapshot, 0.0)
    assert shown[0]["state"] == "unready"
    assert shown[0]["reason"] == "weights are loading"
    assert shown[1]["draining"] is False


def test_an_engine_that_throws_out_segments_is_under_pressure_until_it_starts_anew(store):
    page = Page("e", 0, (Item("k", ("d",), 1_000, 1), Item("l", ("m",), 500, 1)), None)
    held = with_page(NOTHING, page)
    store.holds(ONE, held)
    assert store.snapshot.pressure.of("one") == 0.0
    store.holds(ONE, after(held, [Removed(1, "l")]))
    assert store.snapshot.pressure.of("one") == 2.0
    store.holds(ONE, NOTHING)
    assert store.snapshot.pressure.of("one") == 2.0


def test_what_is_asked_for_often_is_known_to_the_next_choice(store):
    for _ in range(30):
        store.ended(send(store))
    assert store.snapshot.heat.share("d") > 0.7


def test_each_engine_has_a_speed_of_its_own(store, clock):
    ticket = send(store)
    clock.now_s += 0.1
    store.answered(ticket)
    speeds = {w.at.name: w.fill_tokens_per_s for w in store.snapshot.workers}
    assert speeds.pop(ticket.at.name) == pytest.approx(10_000)
    assert set(speeds.values()) == {0.0}
