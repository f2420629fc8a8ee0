import pytest

from local.cluster.core.parts import Part
from local.cluster.core.plan import NEVER_STARTED, Action, Observed, is_cold, repair

STORE = Part("etcd", 1, ("etcd",), "http://127.0.0.1:1/")
API = Part("apiserver", 2, ("apiserver",), "http://127.0.0.1:2/")
WELL = Observed(recorded=True, alive=True, current=True, healthy=True)


def test_parts_that_are_well_are_kept() -> None:
    steps = repair((STORE, API), {"etcd": WELL, "apiserver": WELL})
    assert [step.action for step in steps] == [Action.KEEP, Action.KEEP]


def test_a_part_without_a_record_is_started() -> None:
    (step,) = repair((STORE,), {})
    assert (step.action, step.reason) == (Action.START, "not started yet")


@pytest.mark.parametrize(
    ("observed", "action", "reason"),
    [
        (
            Observed(recorded=True, alive=False, current=True, healthy=False),
            Action.START,
            "it had died",
        ),
        (
            Observed(recorded=True, alive=True, current=False, healthy=True),
            Action.RESTART,
            "its configuration changed",
        ),
        (
            Observed(recorded=True, alive=True, current=True, healthy=False),
            Action.RESTART,
            "it ran but did not answer",
        ),
    ],
)
def test_each_trouble_has_its_action_and_its_reason(
    observed: Observed, action: Action, reason: str
) -> None:
    (step,) = repair((STORE,), {"etcd": observed})
    assert (step.action, step.reason) == (action, reason)


def test_the_store_comes_before_what_reads_it() -> None:
    assert [step.part.name for step in repair((API, STORE), {})] == ["etcd", "apiserver"]


def test_traces_of_pods_are_cleared_only_when_runtime_and_shims_are_gone() -> None:
    assert is_cold({"containerd": NEVER_STARTED}, shims=0)
    assert not is_cold({"containerd": NEVER_STARTED}, shims=1)
    assert not is_cold({"containerd": WELL}, shims=0)
