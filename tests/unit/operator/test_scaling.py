from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypic_operator.core import scaling
from hypic_operator.core.scaling import Bounds, Decision, Load, Recommendation

from ...support import resources

BOUNDS = Bounds(1, 4, requests=8, computed_per_s=None, calm_s=300, idle_s=600)
SLEEPY = replace(BOUNDS, fewest=0)
NOW_S = 10_000.0


def _decided(
    load: Load | None,
    bounds: Bounds = BOUNDS,
    *,
    current: int = 2,
    ready: int = 2,
    rolling: bool = False,
    before: tuple[Recommendation, ...] = (),
) -> Decision:
    memory = scaling.remembered(before, bounds, load, now_s=NOW_S)
    return scaling.decide(
        bounds, load, memory, current=current, ready=ready, rolling=rolling, now_s=NOW_S
    )


def _calm(engines: int, *, busy: bool = False, for_s: float = 700) -> tuple[Recommendation, ...]:
    """The same recommendation every 50 s, up to now."""
    ages = range(int(for_s), 0, -50)
    return tuple(Recommendation(NOW_S - age, engines, busy) for age in ages)


@pytest.mark.parametrize(
    ("requests", "engines"), [(0, 1), (1, 1), (8, 1), (9, 2), (17, 3), (1000, 4)]
)
def test_each_engine_gets_its_share_of_requests_within_the_bounds(
    requests: int, engines: int
) -> None:
    assert scaling.wanted(BOUNDS, Load(requests)) == engines


def test_uncached_tokens_count_where_a_share_is_given() -> None:
    bounds = replace(BOUNDS, computed_per_s=1000)
    assert scaling.wanted(bounds, Load(1, computed_per_s=2500.0)) == 3
    assert scaling.wanted(bounds, Load(1, computed_per_s=None)) == 1
    assert scaling.wanted(BOUNDS, Load(1, computed_per_s=2500.0)) == 1
    assert "2500 uncached tokens/s" in _decided(Load(1, computed_per_s=2500.0), bounds).message


def test_more_engines_come_at_once_even_while_one_starts_or_a_roll_is_on() -> None:
    found = _decided(Load(30), ready=0, rolling=True)
    assert (found.engines, found.reason) == (4, "ScaledUp")
    assert found.message == "30 requests, 8 an engine"


def test_no_data_changes_nothing_and_says_so() -> None:
    found = _decided(None, before=_calm(1))
    assert (found.engines, found.reason, found.known) == (2, "NoMetrics", False)


def test_half_of_the_data_takes_nothing_away() -> None:
    found = _decided(Load(1, whole=False), before=_calm(1))
    assert (found.engines, found.reason, found.known) == (2, "PartOfMetrics", False)
    assert _decided(Load(30, whole=False)).engines == 4


def test_after_a_gap_in_the_data_calm_begins_anew() -> None:
    assert scaling.remembered(_calm(1), BOUNDS, None, now_s=NOW_S) == ()
    assert _decided(Load(0)).reason == "WaitsForCalm"


def test_idle_is_not_no_data_dynamo_6985() -> None:
    found = _decided(Load(0), before=_calm(1))
    assert (found.engines, found.reason, found.known) == (1, "ScaledDown", True)


def test_the_busiest_moment_of_the_window_counts() -> None:
    before = (*_calm(1, for_s=700), Recommendation(NOW_S - 100, 3, busy=True))
    assert _decided(Load(0), current=4, before=before).engines == 3
    assert _decided(Load(0), current=3, before=before).reason == "WaitsForCalm"


def test_nothing_is_taken_away_during_a_roll() -> None:
    assert _decided(Load(0), rolling=True, before=_calm(1)).reason == "Rolling"


def test_what_is_right_stays() -> None:
    assert _decided(Load(10)).reason == "Enough"


def test_engines_sleep_when_they_have_been_idle_long_enough() -> None:
    found = _decided(Load(0), SLEEPY, current=1, before=_calm(0))
    assert (found.engines, found.reason) == (0, "FellAsleep")
    found = _decided(Load(0), SLEEPY, current=1, before=_calm(0, for_s=400))
    assert (found.engines, found.reason) == (1, "WaitsForIdle")
    found = _decided(Load(0), SLEEPY, current=3, before=_calm(0, for_s=400))
    assert (found.engines, found.reason) == (1, "ScaledDown")


def test_engines_that_were_never_ready_are_not_put_to_sleep() -> None:
    found = _decided(Load(0), SLEEPY, current=1, ready=0, before=_calm(0))
    assert (found.engines, found.reason) == (1, "Waking")


def test_a_held_request_wakes_and_nothing_else_does_llmkube_1793() -> None:
    found = _decided(Load(1, held=1), SLEEPY, current=0, ready=0)
    assert (found.engines, found.reason) == (1, "Woken")
    assert found.message == "1 request, 1 of them held, 8 an engine"
    assert _decided(Load(0), SLEEPY, current=0, ready=0).engines == 0
    assert _decided(None, SLEEPY, current=0, ready=0).engines == 0


def test_memory_keeps_no_more_than_its_longest_window_needs() -> None:
    kept = scaling.remembered(_calm(1, for_s=5_000), BOUNDS, Load(0), now_s=NOW_S)
    assert [NOW_S - item.at_s for item in kept][:2] == [600, 550]


@given(
    requests=st.integers(0, 100),
    held=st.integers(0, 3),
    current=st.integers(0, 4),
    ready=st.integers(0, 4),
    whole=st.booleans(),
    fewest=st.integers(0, 2),
)
def test_the_number_stays_within_the_bounds_or_as_it_was_dynamo_12428(
    requests: int, held: int, current: int, ready: int, whole: bool, fewest: int
) -> None:
    bounds = replace(BOUNDS, fewest=fewest)
    load = Load(requests + held, held, whole=whole)
    found = _decided(load, bounds, current=current, ready=ready, before=_calm(1))
    assert found.engines == current or fewest <= found.engines <= bounds.most


def test_an_engine_that_does_not_get_ready_keeps_no_other_dynamo_14251() -> None:
    found = _decided(Load(1), current=3, ready=2, before=_calm(1))
    assert (found.engines, found.reason) == (1, "ScaledDown")


def test_a_held_request_wakes_both_roles_of_a_pair_autoscaling_1531() -> None:
    asleep = {"min": 0, "max": 4}
    cluster = resources.cluster(prefill={"scaling": asleep}, decode={"scaling": asleep})
    for spec in cluster.spec.roles.values():
        assert spec.scaling is not None
        found = _decided(Load(0, held=1), Bounds.of(spec.scaling), current=0, ready=0)
        assert (found.engines, found.reason) == (1, "Woken")
