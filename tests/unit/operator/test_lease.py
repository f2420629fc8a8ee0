import pytest

from hypic_operator.core import lease
from hypic_operator.core.lease import Seen

ME = "me"


@pytest.mark.parametrize(
    ("holder", "age_s", "mine"),
    [("", 0, True), (ME, 0, True), ("other", 15, False), ("other", 15.1, True), (ME, 99, True)],
)
def test_a_lease_is_taken_when_it_is_free_or_was_not_renewed(
    holder: str, age_s: float, mine: bool
) -> None:
    found = Seen("1", holder, 15.0, since_s=100.0)
    assert lease.may_take(found, identity=ME, now_s=100.0 + age_s) is mine


def test_a_renewal_begins_its_time_anew_and_nothing_else_does() -> None:
    first = Seen("1", "other", 15.0, since_s=1.0)
    assert lease.seen(None, first) == first
    assert lease.seen(first, Seen("1", "other", 15.0, since_s=9.0)).since_s == 1.0
    assert lease.seen(first, Seen("2", "other", 15.0, since_s=9.0)).since_s == 9.0
