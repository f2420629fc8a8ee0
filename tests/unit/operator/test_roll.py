import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypic_operator.core.observed import Child, Observed
from hypic_operator.core.pods import Pod
from hypic_operator.core.roll import Asked, Roll, Strategy, roll
from hypic_operator.core.trouble import Rank, Trouble

LOADING = Trouble("Loading", "is loading the model", Rank.LOADING)
FULL = Trouble("Unschedulable", "0/3 nodes: 3 Insufficient nvidia.com/gpu.", Rank.UNSCHEDULABLE)
ELSEWHERE = Trouble("Unschedulable", "0/3 nodes: 3 had untolerated taint", Rank.UNSCHEDULABLE)


def _labels(role: str, revision: str) -> dict[str, str]:
    return {"app.kubernetes.io/component": role, "serving.hypic.dev/revision": revision}


def _observed(*sets: tuple[str, str, list[Trouble | None]]) -> Observed:
    """Sets by role and revision, with what keeps each of their engines from being ready."""
    children, pods, present = [], [], {}
    for role, revision, troubles in sets:
        name = f"demo-{role}-{revision}"
        live = {
            "metadata": {"labels": _labels(role, revision)},
            "spec": {"replicas": len(troubles)},
        }
        children.append(Child("StatefulSet", name, owned=True, leaving=False, live=live))
        for ordinal, trouble in enumerate(troubles):
            pods.append(Pod(f"{name}-{ordinal}", "u", role, revision, trouble, running=True))
        present[name] = len(troubles)
    return Observed(tuple(children), tuple(pods), present)


def _rolled(
    observed: Observed, strategy: Strategy = "Surge", max_skew: int = 1, **sizes: int
) -> Roll:
    asked = Asked("new", sizes, strategy, max_skew)
    return roll(asked, observed, served_last="old")


def _numbers(found: Roll) -> tuple[dict[str, int], dict[str, int]]:
    return dict(found.goals or {}), dict(found.others or {})


def test_without_another_revision_all_engines_come_at_once() -> None:
    found = _rolled(Observed(), prefill=4, decode=2)
    assert _numbers(found) == ({"prefill": 4, "decode": 2}, {})


def test_with_surge_a_quarter_comes_before_anything_goes() -> None:
    found = _rolled(_observed(("prefill", "old", [None] * 8)), prefill=8)
    assert _numbers(found) == ({"prefill": 2}, {"demo-prefill-old": 8})


def test_with_surge_an_old_engine_goes_for_each_that_is_ready() -> None:
    observed = _observed(("prefill", "old", [None] * 4), ("prefill", "new", [None, LOADING]))
    assert _numbers(_rolled(observed, prefill=4)) == ({"prefill": 2}, {"demo-prefill-old": 3})


def test_with_recreate_an_old_engine_goes_first_and_its_room_is_used() -> None:
    observed = _observed(("prefill", "old", [None] * 3))
    found = _rolled(observed, "Recreate", prefill=3)
    assert _numbers(found) == ({"prefill": 0}, {"demo-prefill-old": 2})
    observed = _observed(("prefill", "old", [None] * 2))
    found = _rolled(observed, "Recreate", prefill=3)
    assert _numbers(found) == ({"prefill": 1}, {"demo-prefill-old": 2})
    observed = _observed(("prefill", "old", [None] * 2), ("prefill", "new", [None]))
    found = _rolled(observed, "Recreate", prefill=3)
    assert _numbers(found) == ({"prefill": 1}, {"demo-prefill-old": 1})


def test_auto_makes_room_only_when_the_scheduler_finds_none_kserve_5452() -> None:
    old = ("prefill", "old", [None] * 2)
    for trouble, left in ((LOADING, 2), (ELSEWHERE, 2), (FULL, 1)):
        found = _rolled(_observed(old, ("prefill", "new", [trouble])), "Auto", prefill=2)
        assert _numbers(found) == ({"prefill": 1}, {"demo-prefill-old": left})
        assert found.crowded == (trouble.message if left == 1 else "")


def test_an_engine_that_made_room_does_not_come_back_during_the_roll() -> None:
    observed = _observed(("prefill", "old", [None]), ("prefill", "new", [LOADING]))
    assert _numbers(_rolled(observed, "Auto", prefill=2))[1] == {"demo-prefill-old": 1}


def test_a_revision_that_never_becomes_ready_takes_no_more_than_its_place() -> None:
    for strategy, left in (("Surge", 4), ("Auto", 4), ("Recreate", 3)):
        observed = _observed(("prefill", "old", [None] * left), ("prefill", "new", [LOADING]))
        found = _rolled(observed, strategy, prefill=4)  # type: ignore[arg-type]
        assert _numbers(found) == ({"prefill": 1}, {"demo-prefill-old": left})


def test_prefill_of_the_new_revision_replaces_nobody_before_its_decode_is_ready_llmd_499() -> None:
    old = (("prefill", "old", [None] * 2), ("decode", "old", [None]))
    observed = _observed(*old, ("prefill", "new", [None]), ("decode", "new", [LOADING]))
    assert _numbers(_rolled(observed, prefill=2, decode=1))[1] == {
        "demo-prefill-old": 2,
        "demo-decode-old": 1,
    }


def test_the_last_pair_of_the_old_revision_stays_until_the_new_one_is_complete() -> None:
    old = (("prefill", "old", [None] * 4), ("decode", "old", [None]))
    observed = _observed(*old, ("prefill", "new", [None]), ("decode", "new", [None]))
    assert _numbers(_rolled(observed, prefill=4, decode=1))[1] == {
        "demo-prefill-old": 3,
        "demo-decode-old": 1,
    }


def test_no_role_runs_ahead_of_the_other() -> None:
    old = (("prefill", "old", [None] * 8), ("decode", "old", [None] * 4))
    observed = _observed(*old, ("prefill", "new", [None] * 2), ("decode", "new", [LOADING]))
    assert _numbers(_rolled(observed, prefill=8, decode=4))[0] == {"prefill": 2, "decode": 1}
    assert _numbers(_rolled(observed, max_skew=4, prefill=8, decode=4))[0] == {
        "prefill": 4,
        "decode": 1,
    }


def test_a_complete_revision_retires_all_others() -> None:
    observed = _observed(("prefill", "old", [None] * 2), ("prefill", "new", [None] * 2))
    found = _rolled(observed, prefill=2)
    assert found.complete
    assert _numbers(found) == ({"prefill": 2}, {"demo-prefill-old": 0})


TROUBLES = st.lists(st.sampled_from([None, LOADING, FULL]), max_size=5)


@pytest.mark.parametrize("strategy", ["Auto", "Surge", "Recreate"])
@given(old=TROUBLES, new=TROUBLES, size=st.integers(0, 5))
def test_a_roll_never_takes_more_than_one_engine_beyond_what_the_new_revision_replaces(
    strategy: Strategy, old: list[Trouble | None], new: list[Trouble | None], size: int
) -> None:
    observed = _observed(("prefill", "old", old), ("prefill", "new", new))
    found = _rolled(observed, strategy, prefill=size)
    goals, others = _numbers(found)
    ready = sum(trouble is None for trouble in new)
    assert 0 <= goals["prefill"] <= size
    assert goals["prefill"] >= min(len(new), size)
    assert 0 <= others["demo-prefill-old"] <= len(old)
    taken = min(len(old), size) - others["demo-prefill-old"]
    assert taken <= min(ready, size) + (strategy != "Surge")


@given(size=st.integers(1, 6), strategy=st.sampled_from(["Auto", "Surge", "Recreate"]))
def test_a_roll_ends_when_every_engine_becomes_ready(size: int, strategy: Strategy) -> None:
    old, new = size, 0
    for _ in range(4 * size + 4):
        observed = _observed(("prefill", "old", [None] * old), ("prefill", "new", [None] * new))
        found = _rolled(observed, strategy, prefill=size)
        goals, others = _numbers(found)
        old, new = others["demo-prefill-old"], goals["prefill"]
        if strategy == "Recreate":
            assert old + new <= size
    assert (old, new) == (0, size)
