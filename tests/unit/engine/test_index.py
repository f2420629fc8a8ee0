import random
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hypic_engine.core.entry import Entry
from hypic_engine.core.index import Index, Pins

from ...support.steps import steps


def entry(key: str, n_tokens: int = 10, **fields) -> Entry:
    slots = fields.pop("slots", None)
    return Entry(key, key.encode(), n_tokens, n_tokens * 8 + 100, slots, None, **fields)


def index_of(*entries: Entry) -> Index:
    index = Index()
    for one in entries:
        index.insert(one)
    return index


def test_an_entry_is_found_by_key_and_token_ids():
    index = index_of(entry("a"))
    assert index.find("a", b"a") is not None
    assert index.find("a", b"other tokens, same key") is None
    assert index.find("b", b"b") is None


def test_a_key_is_taken_once():
    index = index_of(entry("a"))
    with pytest.raises(ValueError, match="taken"):
        index.insert(entry("a"))


def test_a_pinned_entry_stays():
    index = index_of(entry("a"), entry("b"))
    pins = Pins(index)
    pins.add(index.find("a", b"a"))
    assert [e.key for e in index.evicted(n_entries=2)] == ["b"]
    pins.release()
    assert [e.key for e in index.evicted(n_entries=2)] == ["a"]


def test_a_handle_is_released_exactly_once():
    index = index_of(entry("a"))
    pins, other = Pins(index), Pins(index)
    pins.add(index.find("a", b"a"))
    pins.add(index.find("a", b"a"))
    other.add(index.find("a", b"a"))
    assert len(pins) == 1
    pins.release()
    pins.release()
    assert index.n_pinned_tokens == 10
    other.release()
    assert index.n_pinned_tokens == 0
    with pytest.raises(RuntimeError, match="released handle"):
        pins.add(index.find("a", b"a"))


def test_more_releases_than_pins_are_an_error():
    index = index_of(entry("a"))
    with pytest.raises(RuntimeError, match="more often"):
        index.unpin(index.find("a", b"a"))


def test_what_was_never_used_leaves_first():
    index = index_of(entry("used"), entry("chat"), entry("more chat"))
    index.used(index.find("used", b"used"))
    assert [e.key for e in index.evicted(n_entries=2)] == ["chat", "more chat"]


def test_a_thousand_chat_turns_do_not_push_out_a_used_document():
    index = index_of(entry("document", 500))
    index.used(index.find("document", b"document"))
    for turn in range(1000):
        index.insert(entry(f"turn {turn}", 40))
        if index.n_tokens > 1000:
            index.evicted(n_tokens=index.n_tokens - 1000)
    assert index.find("document", b"document") is not None


def test_eviction_can_be_limited_to_what_is_on_probation():
    index = index_of(entry("used"))
    index.used(index.find("used", b"used"))
    assert index.evicted(n_entries=1, only_on_probation=True) == []
    assert len(index) == 1
    assert [e.key for e in index.evicted(n_entries=1)] == ["used"]


def test_a_long_segment_is_worth_more_per_byte_than_a_short_one():
    short, long = entry("short", 6), entry("long", 600)
    index = index_of(long, short)
    for one in (short, long):
        index.used(one)
    assert [e.key for e in index.evicted(n_entries=1)] == ["short"]


def test_eviction_stops_at_the_amount():
    index = index_of(*(entry(str(i)) for i in range(5)))
    assert len(index.evicted(n_tokens=15)) == 2
    assert (index.n_evictable_tokens, index.n_evictable_entries) == (30, 3)


def test_clearing_returns_everything():
    index = index_of(entry("a"), entry("b"))
    Pins(index).add(index.find("a", b"a"))
    assert {e.key for e in index.clear()} == {"a", "b"}
    index.check_integrity()
    assert (len(index), index.n_tokens, index.n_pinned_tokens) == (0, 0, 0)


def test_a_slot_owned_twice_is_noticed():
    index = index_of(entry("a", slots=(1, 2)), entry("b", slots=(2, 3)))
    with pytest.raises(AssertionError):
        index.check_integrity(slot for one in index for slot in one.slots)


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_any_interleaving_keeps_every_size_right(seed):
    dice, index, handles = random.Random(seed), Index(), []
    for step in range(300):
        action = dice.randrange(6)
        known = list(index)
        if action <= 1:
            index.insert(entry(f"{step}", dice.randrange(1, 90)))
        elif action == 2 and known:
            pins = Pins(index)
            for one in dice.sample(known, dice.randint(1, len(known))):
                pins.add(one)
                index.used(one)
            handles.append(pins)
        elif action == 3 and handles:
            handles.pop(dice.randrange(len(handles))).release()
        elif action == 4:
            index.evicted(n_tokens=dice.randrange(200), n_entries=dice.randrange(3))
        elif action == 5 and dice.random() < 0.02:
            for pins in handles:
                pins.release()
            handles.clear()
            index.clear()
        index.check_integrity()


def test_kept_entries_leave_last_and_never_for_one_on_probation():
    index = index_of(entry("a"), entry("b"), entry("c"))
    index.keep(index.find("a", b"a"), kept=True)
    index.used(index.find("b", b"b"))
    assert [e.key for e in index.evicted(n_entries=9, only_on_probation=True)] == ["c"]
    assert [e.key for e in index.evicted(n_entries=9)] == ["b", "a"]
    assert (index.n_kept_tokens, index.n_kept_entries) == (0, 0)


def test_keeping_twice_counts_once_and_can_be_undone():
    index = index_of(entry("a"), entry("b"))
    kept = index.find("b", b"b")
    for _ in range(2):
        index.keep(kept, kept=True)
    index.check_integrity()
    assert (index.n_kept_tokens, index.n_kept_entries) == (10, 1)
    for _ in range(2):
        index.keep(kept, kept=False)
    assert (index.n_kept_tokens, index.n_kept_entries) == (0, 0)


def test_an_entry_with_readers_is_not_removed():
    index = index_of(entry("a"))
    pins = Pins(index)
    pins.add(index.find("a", b"a"))
    with pytest.raises(RuntimeError, match="1 readers"):
        index.remove(index.find("a", b"a"))
    pins.release()
    index.remove(index.find("a", b"a"))
    assert len(index) == 0


def test_a_hundred_times_as_many_entries_cost_at_most_twice_the_work():
    few, many = (index_of(*(entry(f"{i}") for i in range(n))) for n in (100, 10_000))
    for look in (
        lambda index: index.evicted(n_entries=1),
        lambda index: (index.n_evictable_tokens, index.n_evictable_entries),
        lambda index: index.find("50", b"50"),
    ):
        assert steps(partial(look, many)) <= 2 * steps(partial(look, few))
