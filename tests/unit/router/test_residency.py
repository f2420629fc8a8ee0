import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypic_engine.contract.events import (
    Alias,
    Alive,
    Cleared,
    Gap,
    Hello,
    Item,
    Page,
    Removed,
    Stored,
)
from hypic_router.core.caches import residency as residencies
from hypic_router.core.caches.residency import NOTHING, Residency, after, with_page


def item(key, *digests, n_tokens=5):
    return Item(key, digests or (f"d-{key}",), n_tokens, 100)


SYNCED = with_page(NOTHING, Page("e1", 10, (item("a"), item("b", "d-b", "d-b2", n_tokens=7)), None))


def held(residency):
    return {digest: found.n_tokens for digest, found in residency.digests.items()}


def test_a_snapshot_is_what_is_held():
    assert (SYNCED.epoch, SYNCED.seq, SYNCED.stale) == ("e1", 10, False)
    assert held(SYNCED) == {"d-a": 5, "d-b": 7, "d-b2": 7}
    assert SYNCED.held("d-b2") == 7
    assert SYNCED.held("d-c") is None


def test_events_change_what_is_held_in_their_order():
    lines = [
        Hello("e1", 14),
        Stored(11, item("c")),
        Alias(12, item("a", "d-a", "d-ids")),
        Removed(13, "b"),
        Alive(13),
        Stored(14, item("b", n_tokens=9)),
    ]
    now = after(SYNCED, lines)
    assert held(now) == {"d-a": 5, "d-ids": 5, "d-c": 5, "d-b": 9}
    assert (now.seq, now.stale) == (14, False)
    assert held(SYNCED) == {"d-a": 5, "d-b": 7, "d-b2": 7}


def test_an_alias_that_names_only_the_new_digest_keeps_the_old_ones():
    now = after(SYNCED, [Alias(11, item("b", "d-new", n_tokens=7)), Removed(12, "b")])
    assert held(now) == {"d-a": 5}


def test_a_digest_that_moved_to_another_entry_survives_the_first_ones_end():
    now = after(SYNCED, [Stored(11, item("a2", "d-a", n_tokens=6)), Removed(12, "a")])
    assert now.held("d-a") == 6


def test_after_a_clear_only_what_came_later_is_held():
    now = after(SYNCED, [Stored(11, item("c")), Cleared(12), Stored(13, item("d"))])
    assert held(now) == {"d-d": 5}
    assert (now.epoch, now.seq, now.stale) == ("e1", 13, False)


@pytest.mark.parametrize("line", [Stored(10, item("x")), Removed(9, "a"), Cleared(3), Alive(4)])
def test_what_was_seen_already_changes_nothing(line):
    assert held(after(SYNCED, [line])) == held(SYNCED)
    assert after(SYNCED, [line]).seq == 10


@pytest.mark.parametrize(
    ("line", "epoch"),
    [
        (Stored(12, item("x")), "e1"),
        (Removed(12, "a"), "e1"),
        (Cleared(12), "e1"),
        (Alive(11), "e1"),
        (Gap(), "e1"),
        (Hello("e1", 9), "e1"),
        (Hello("e2", 10), "e2"),
    ],
)
def test_what_shows_that_something_was_missed_makes_everything_unknown(line, epoch):
    now = after(SYNCED, [line, Stored(11, item("y"))])
    assert now == Residency(epoch=epoch)
    assert now.stale


def test_pages_together_are_the_snapshot_and_events_from_the_first_are_read_again():
    building = with_page(NOTHING, Page("e1", 10, (item("a"),), "next"))
    whole = with_page(building, Page("e1", 12, (item("b"),), None))
    assert held(whole) == {"d-a": 5, "d-b": 5}
    assert (whole.seq, whole.stale) == (10, False)
    now = after(whole, [Removed(11, "a"), Stored(12, item("b"))])
    assert held(now) == {"d-b": 5}


def test_a_page_of_another_epoch_starts_over():
    building = with_page(NOTHING, Page("e1", 10, (item("a"),), "next"))
    assert with_page(building, Page("e2", 1, (item("b"),), None)) is NOTHING


KEYS = st.sampled_from("abcdef")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("store"), KEYS),
        st.tuples(st.just("remove"), KEYS),
        st.tuples(st.just("clear"), st.just("")),
    ),
    max_size=40,
)


@given(STEPS, st.lists(st.integers(1, 40), max_size=8), st.integers(0, 40))
def test_any_batches_with_any_repeats_end_where_the_engine_is(steps, cuts, replay):
    engine: set[str] = set()
    lines = []
    for number, (what, key) in enumerate(steps, 1):
        match what:
            case "store":
                engine.add(key)
                lines.append(Stored(number, item(key)))
            case "remove":
                engine.discard(key)
                lines.append(Removed(number, key))
            case _:
                engine.clear()
                lines.append(Cleared(number))
    now = with_page(NOTHING, Page("e", 0, (), None))
    edges = [0, *sorted(min(cut, len(lines)) for cut in cuts), len(lines)]
    for start, end in itertools.pairwise(edges):
        now = after(now, lines[max(start - replay, 0) : end])
    assert set(held(now)) == {f"d-{key}" for key in engine}
    assert {key for key, _ in now.keys.items()} == engine


def test_what_was_thrown_out_is_counted_and_what_is_held_too():
    assert (SYNCED.n_tokens, SYNCED.evicted_tokens) == (12, 0)
    now = after(SYNCED, [Stored(11, item("c", n_tokens=9)), Removed(12, "b"), Removed(13, "x")])
    assert (now.n_tokens, now.evicted_tokens) == (14, 7)
    now = after(now, [Alias(14, item("a", "d-a2"))])
    assert (now.n_tokens, now.evicted_tokens) == (14, 7)


def test_a_segment_in_host_memory_is_held_at_the_price_of_fetching_it():
    away = Item("h", ("d-h",), 5, 1_000, "host")
    now = after(SYNCED, [Stored(11, away)])
    assert now.digests.among({"d-h", "d-a"})["d-h"].fetch_bytes == 1_000
    assert now.digests.among({"d-h", "d-a"})["d-a"].fetch_bytes == 0


def test_a_full_directory_remembers_what_it_has_and_takes_more_once_there_is_room(monkeypatch):
    monkeypatch.setattr(residencies, "MOST_DIGESTS", 4)
    now = after(SYNCED, [Stored(11, item("c")), Stored(12, item("d")), Stored(13, item("e", "e"))])
    assert now.full
    assert sorted(held(now)) == ["d-a", "d-b", "d-b2", "d-c"]
    now = after(now, [Removed(14, "e"), Removed(15, "b"), Stored(16, item("f"))])
    assert sorted(held(now)) == ["d-a", "d-c", "d-f"]
    assert not now.full
