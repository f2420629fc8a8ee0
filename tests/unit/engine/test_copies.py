import pytest

from hypic_engine.core.copies import Copies


def test_requests_that_place_a_segment_alike_share_one_copy():
    copies = Copies()
    first = copies.add(("segment", 30), "slots", 10)
    assert copies.shared(("segment", 30)) is first
    assert copies.shared(("segment", 31)) is None
    assert copies.shared(("other", 30)) is None
    assert (first.n_readers, copies.n_tokens) == (2, 10)


def test_a_copy_lives_until_its_last_reader_ends():
    copies = Copies()
    copy = copies.add(("segment", 0), "slots", 10)
    copies.shared(copy.place)
    assert not copies.release(copy)
    assert copy.place in copies
    assert copies.release(copy)
    assert (copies.n_tokens, list(copies)) == (0, [])
    with pytest.raises(RuntimeError, match="more often"):
        copies.release(copy)


def test_a_place_has_one_copy():
    copies = Copies()
    copies.add(("segment", 0), "slots", 10)
    with pytest.raises(ValueError, match="has a copy"):
        copies.add(("segment", 0), "others", 10)
