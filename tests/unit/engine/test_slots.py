import pytest

from hypic_engine.core.slots import Slots


def test_every_slot_is_handed_out_once_and_zero_never():
    slots = Slots(3)
    assert sorted(slots.alloc() for _ in range(3)) == [1, 2, 3]
    assert slots.alloc() is None


def test_a_slot_that_nobody_owns_cannot_be_freed():
    slots = Slots(2)
    taken = slots.alloc()
    slots.free(taken)
    for wrong in (taken, 0, 3):
        with pytest.raises(RuntimeError, match="not taken"):
            slots.free(wrong)
    assert slots.n_free == 2


def test_a_recount_notices_a_slot_that_is_owned_and_free():
    slots = Slots(2)
    taken = slots.alloc()
    slots.check_integrity({taken})
    with pytest.raises(AssertionError):
        slots.check_integrity({1, 2})
    slots.clear()
    slots.check_integrity(set())
