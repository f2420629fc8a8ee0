from typing import Any

import pytest

from hypic_operator.core import desired, plan
from hypic_operator.core.api import HypicCluster
from hypic_operator.core.desired import engine
from hypic_operator.core.observed import Observed
from hypic_operator.core.plan import Blocked, Plan
from hypic_operator.core.refusals import Refusal

from ...support import resources

OLD: dict[str, Any] = {"pic": {"seam": 4}, "prefill": {"replicas": 2}}
NEW: dict[str, Any] = {"prefill": {"replicas": 2}}
OTHER: dict[str, Any] = {"pic": {"seam": 2}, "prefill": {"replicas": 2}}
LOADING = resources.loading()


def _planned(cluster: HypicCluster, observed: Observed, refusal: Refusal | None = None) -> Plan:
    wanted = desired.children(cluster, resources.POLICY, observed)
    return plan.plan(cluster, observed, wanted, refusal)


def _status(spec: dict[str, Any]) -> dict[str, Any]:
    """The status after this spec's revision was complete."""
    return {"prefill": {"revision": _revision(spec)}}


def _revision(spec: dict[str, Any]) -> str:
    return engine.revision(resources.cluster(**spec))


def _both(cluster: HypicCluster, *parts: tuple[dict[str, Any], list[dict[str, Any]]]) -> Observed:
    """Sets of several revisions: each with its spec and the status of each of its pods."""
    children: dict[tuple[str, str], Any] = {}
    pods: list[Any] = []
    for spec, statuses in parts:
        other = resources.cluster(**spec)
        name = f"demo-both-{engine.revision(other)}"
        named = {f"{name}-{n}": status for n, status in enumerate(statuses)}
        made, of_set = resources.snapshot(other, pods=named)
        children |= {(item["kind"], item["metadata"]["name"]): item for item in made}
        pods += of_set
    return Observed.of(cluster, list(children.values()), pods)


def test_at_first_everything_is_made_in_order() -> None:
    found = _planned(resources.cluster(), Observed())
    kinds = [item["kind"] for item in found.apply]
    assert kinds.index("ServiceAccount") < kinds.index("RoleBinding") < kinds.index("StatefulSet")
    assert len(kinds) == 11
    assert [reason.reason for reason in found.reasons] == ["RevisionStarted"]
    assert not found.roll.complete
    assert found.roll.serving == ""


def test_asked_again_when_all_is_there_nothing_is_left_to_do() -> None:
    cluster = resources.cluster()
    found = _planned(cluster, Observed.of(cluster, *resources.snapshot(cluster)))
    assert (found.apply, found.idle, found.delete, found.reasons) == ((), (), (), ())
    assert found.roll.complete


def test_a_foreign_edit_is_put_back_and_told() -> None:
    cluster = resources.cluster()
    children, pods = resources.snapshot(cluster)
    (role,) = (child for child in children if child["kind"] == "Role")
    role["rules"].append({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]})
    found = _planned(cluster, Observed.of(cluster, children, pods))
    assert [item["kind"] for item in found.apply] == ["Role"]
    assert [reason.reason for reason in found.reasons] == ["EditUndone"]


def test_a_changed_field_of_the_spec_is_applied_without_a_word_of_edits() -> None:
    before = resources.cluster()
    after = resources.cluster(router={"replicas": 3})
    found = _planned(after, Observed.of(after, *resources.snapshot(before)))
    assert [item["kind"] for item in found.apply] == ["Deployment"]
    assert found.reasons == ()


def test_nothing_is_written_while_a_refusal_stands() -> None:
    cluster = resources.cluster(**NEW, status=_status(OLD))
    observed = _both(cluster, (OLD, [resources.READY] * 2))
    found = _planned(cluster, observed, Refusal("PrefillReady", "OwnedArgument", "no"))
    assert (found.apply, found.idle, found.delete) == ((), (), ())
    assert found.roll.serving == _revision(OLD)


def test_the_old_revision_stays_while_the_new_one_is_not_complete() -> None:
    cluster = resources.cluster(**NEW, status=_status(OLD))
    observed = _both(cluster, (OLD, [resources.READY] * 2), (NEW, [resources.READY, LOADING]))
    found = _planned(cluster, observed)
    assert (found.idle, found.delete) == ((), ())
    assert found.roll.serving == _revision(OLD)
    assert [item.revision for item in found.roll.keep] == [_revision(OLD)]


def test_the_revision_that_served_stays_even_when_its_engines_are_not_ready_now() -> None:
    cluster = resources.cluster(**NEW, status=_status(OLD))
    observed = _both(cluster, (OLD, [LOADING] * 2), (NEW, [LOADING] * 2))
    found = _planned(cluster, observed)
    assert found.idle == ()
    assert found.roll.serving == _revision(OLD)


def test_the_old_revision_is_emptied_when_the_new_one_is_complete() -> None:
    cluster = resources.cluster(**NEW, status=_status(OLD))
    observed = _both(cluster, (OLD, [resources.READY] * 2), (NEW, [resources.READY] * 2))
    found = _planned(cluster, observed)
    assert [ref.name for ref in found.idle] == [f"demo-both-{_revision(OLD)}"]
    assert found.delete == ()
    assert found.roll.serving == _revision(NEW)
    assert [reason.reason for reason in found.reasons] == ["RevisionRetired"]


def test_routers_change_when_the_engines_they_speak_to_do() -> None:
    spec = {**NEW, "pic": {"separator": "##"}}
    cluster = resources.cluster(**spec, status=_status(OLD))
    rolling = _both(cluster, (OLD, [resources.READY] * 2), (spec, [LOADING] * 2))
    before, _ = resources.snapshot(resources.cluster(**OLD))
    routers = [child for child in before if child["kind"] == "Deployment"]
    others = [child.live for child in rolling.children if child.kind != "Deployment"]
    old, new = ("demo-both-" + _revision(part) for part in (OLD, spec))

    def planned(status: dict[str, Any]) -> list[str]:
        sets = {child.name: child.live for child in rolling.children}
        pods = [resources.pod(sets[old], f"{old}-{n}", resources.READY) for n in range(2)]
        pods += [resources.pod(sets[new], f"{new}-{n}", status) for n in range(2)]
        observed = Observed.of(cluster, [*others, *routers], pods)
        return [item["kind"] for item in _planned(cluster, observed).apply]

    assert "Deployment" not in planned(LOADING)
    assert "Deployment" in planned(resources.READY)


@pytest.mark.parametrize(("left", "deleted"), [(1, 0), (0, 1)])
def test_an_emptied_set_is_deleted_when_its_last_pod_is_gone(left: int, deleted: int) -> None:
    cluster = resources.cluster(**NEW, status=_status(NEW))
    other = resources.cluster(**OLD)
    name = f"demo-both-{engine.revision(other)}"
    old, ending = resources.snapshot(other, pods=dict.fromkeys([f"{name}-0"][:left], LOADING))
    old = [item for item in old if item["kind"] == "StatefulSet"]
    old[0]["spec"]["replicas"] = 0
    for item in ending:
        item["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    new, pods = resources.snapshot(cluster)
    found = _planned(cluster, Observed.of(cluster, [*new, *old], [*pods, *ending]))
    assert found.idle == ()
    assert len(found.delete) == deleted


def test_a_revision_that_never_came_up_goes_and_holds_nobody_back() -> None:
    cluster = resources.cluster(**NEW, status=_status(OLD))
    crashing = resources.crashed(1, "boom")
    observed = _both(
        cluster,
        (OLD, [resources.READY] * 2),
        (OTHER, [crashing] * 2),
        (NEW, [LOADING] * 2),
    )
    found = _planned(cluster, observed)
    assert [ref.name for ref in found.idle] == [f"demo-both-{_revision(OTHER)}"]
    assert [item.revision for item in found.roll.keep] == [_revision(OLD)]
    assert "never became ready" in found.reasons[-1].message


def test_taking_a_change_back_retires_what_it_made() -> None:
    cluster = resources.cluster(**OLD, status=_status(OLD))
    crashing = resources.crashed(1, "boom")
    observed = _both(cluster, (OLD, [resources.READY] * 2), (NEW, [crashing] * 2))
    found = _planned(cluster, observed)
    assert found.roll.complete
    assert [ref.name for ref in found.idle] == [f"demo-both-{_revision(NEW)}"]


def test_with_its_status_lost_the_ready_revision_is_known_as_serving() -> None:
    cluster = resources.cluster(**NEW)
    found = plan.roll(cluster, _both(cluster, (OLD, [resources.READY] * 2)))
    assert found.serving == _revision(OLD)


def test_a_serving_revision_that_somebody_deleted_is_not_said_to_serve() -> None:
    cluster = resources.cluster(**NEW, status=_status(OLD))
    assert plan.roll(cluster, Observed()).serving == ""


def test_what_was_made_under_another_name_is_deleted() -> None:
    cluster = resources.cluster()
    children, pods = resources.snapshot(cluster)
    (service, *_) = (child for child in children if child["kind"] == "Service")
    stray = {**service, "metadata": {**service["metadata"], "name": "earlier", "uid": "s"}}
    found = _planned(cluster, Observed.of(cluster, [*children, stray], pods))
    assert [(ref.kind, ref.name, ref.uid) for ref in found.delete] == [("Service", "earlier", "s")]


@pytest.mark.parametrize("leaving", [True, False])
def test_an_object_of_another_owner_is_left_alone(leaving: bool) -> None:
    cluster = resources.cluster(uid="uid-2")
    children, pods = resources.snapshot(resources.cluster(uid="uid-1"))
    if leaving:
        for child in children:
            child["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = _planned(cluster, Observed.of(cluster, children, pods))
    assert (found.apply, found.idle, found.delete) == ((), (), ())
    assert found.taken is not None
    assert found.taken.reason == "NameTaken"
    assert ("still going" in found.taken.message) is leaving


def test_an_own_object_that_is_going_is_waited_for() -> None:
    cluster = resources.cluster()
    children, pods = resources.snapshot(cluster)
    (service, *_) = (child for child in children if child["kind"] == "Service")
    service["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    service["spec"] = {}
    assert _planned(cluster, Observed.of(cluster, children, pods)).apply == ()


def test_what_no_watch_tells_is_looked_at_soon() -> None:
    cluster = resources.cluster()
    whole = Observed.of(cluster, *resources.snapshot(cluster))
    short = Observed.of(cluster, *resources.snapshot(cluster, pods={}))
    blocked = Blocked("router", "NameTaken", "taken")
    assert plan.look_again_in_s(whole, None) == float("inf")
    assert plan.look_again_in_s(short, None) == plan.SOON_S
    assert plan.look_again_in_s(whole, blocked) == plan.SOON_S
