from hypothesis import given
from hypothesis import strategies as st

from hypic_router.core.caches.layered import SMALLEST_FOLD, Layered

CHANGES = st.lists(
    st.dictionaries(st.integers(0, 99), st.none() | st.integers(1, 9), max_size=40), max_size=12
)


@given(CHANGES)
def test_it_holds_what_a_dict_would_after_any_changes(batches):
    layered, plain = Layered(), {}
    for batch in batches:
        before = layered
        shown = dict(before.items())
        layered = layered.with_changes(batch)
        for key, value in batch.items():
            plain.pop(key, None)
            if value is not None:
                plain[key] = value
        assert dict(before.items()) == shown
        assert dict(layered.items()) == plain
        assert len(layered) == len(plain)
        assert all(layered.get(key) == plain.get(key) for key in range(100))


def test_changing_nothing_gives_the_same_map():
    layered = Layered().with_changes({1: 2})
    assert layered.with_changes({}) is layered


def test_its_top_stays_small_while_it_grows():
    layered = Layered()
    for key in range(5_000):
        layered = layered.with_changes({key: 1})
        assert len(layered.top) <= max(SMALLEST_FOLD, 4 * 71)
    assert len(layered) == 5_000


def test_what_was_removed_stays_removed_when_layers_are_folded():
    layered = Layered().with_changes(dict.fromkeys(range(200), 1))
    assert not layered.top
    removed = layered.with_changes(dict.fromkeys(range(0, 20, 2)))
    assert removed.top
    assert len(removed) == len(list(removed.items())) == 190
    folded = removed.with_changes(dict.fromkeys(range(1, 200, 2)))
    assert not folded.top
    assert set(dict(folded.items())) == set(range(20, 200, 2))
