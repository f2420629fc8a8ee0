import pytest

from hypic_engine.core import evict
from hypic_engine.core.evict import Reason, Side


def worth(value: float, *, settled: bool = True, kept: bool = False) -> evict.Worth:
    return evict.Worth(kept, settled, value, 0)


@pytest.mark.parametrize(
    ("segment", "prefix", "side", "reason"),
    [
        (worth(9, settled=False), worth(1), Side.SEGMENT, Reason.ON_PROBATION),
        (worth(9, settled=False), None, Side.SEGMENT, Reason.ON_PROBATION),
        (worth(1), worth(2), Side.SEGMENT, Reason.WORTH_LESS),
        (worth(2), worth(1), Side.PREFIX, Reason.WORTH_LESS),
        (worth(1, kept=True), worth(2), Side.PREFIX, Reason.WORTH_LESS),
        (worth(1, kept=True), None, Side.SEGMENT, Reason.NOTHING_ELSE),
        (worth(2), None, Side.SEGMENT, Reason.NOTHING_ELSE),
        (None, worth(2), Side.PREFIX, Reason.NOTHING_ELSE),
    ],
)
def test_the_less_worthy_of_segment_and_prefix_leaves_with_a_reason(segment, prefix, side, reason):
    choice = evict.choice(segment, prefix)
    assert (choice.side, choice.reason) == (side, reason)
    assert choice.worth is (segment if side is Side.SEGMENT else prefix)


def test_where_nothing_is_left_nobody_leaves():
    assert evict.choice(None, None) is None


def test_what_was_used_long_ago_is_valued_at_the_floor_of_then():
    ages = evict.Ages()
    ages.note(10, 1.5)
    ages.note(20, 4.0)
    assert [ages.floor_at(tick) for tick in (0, 9, 10, 19, 20, 99)] == [0, 0, 1.5, 1.5, 4, 4]


def test_only_so_many_ages_are_remembered_and_the_oldest_known_stands_for_older_ones():
    ages = evict.Ages(capacity=10)
    for tick in range(1, 1000):
        ages.note(tick, float(tick))
    assert ages.floor_at(999) == 999
    assert ages.floor_at(995) == 995
    assert 0 < ages.floor_at(0) < 999
