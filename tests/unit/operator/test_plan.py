from typing import Any

import pytest

from hypic_operator.core import drain, plan
from hypic_operator.core.api import HypicCluster
from hypic_operator.core.desired import engine
from hypic_operator.core.drain import Heard, Progress
from hypic_operator.core.observed import Observed
from hypic_operator.core.plan import Blocked, Plan
from hypic_operator.core.refusals import Refusal

from ...support import resources
from ...support.planned import planned

OLD: dict[str, Any] = {"pic": {"seam": 4}, "prefill": {"replicas": 2}}
NEW: dict[str, Any] = {"prefill": {"replicas": 2}}
OTHER: dict[str, Any] = {"pic": {"seam": 2}, "prefill": {"replicas": 2}}
LOADING = resources.loading()


def _status(spec: dict[str, Any]) -> dict[str, Any]:
    """The status after this spec's revision was complete."""
    return {"prefill": {"revision": _revision(spec)}}


def _revision(spec: dict[str, Any]) -> str:
    return engine.revision(resources.cluster(**spec))


def _sizes(found: Plan) -> list[int]:
    """Replicas that are written into engine sets."""
    sets = (item for item in found.apply if item["kind"] == "StatefulSet")
    return [item["spec"]["replicas"] for item in sets]


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
    found = planned(resources.cluster(), Observed())
    kinds = [item["kind"] for item in found.apply]
    assert kinds.index("ServiceAccount") < kinds.index("RoleBinding") < kinds.index("StatefulSet")
    assert len(kinds) == 13
    assert [reason.reason for reason in found.reasons] == ["RevisionStarted"]
    assert not found.roll.complete
    assert found.roll.serving == ""


def test_asked_again_when_all_is_there_nothing_is_left_to_do() -> None:
    cluster = resources.cluster()
    found = planned(cluster, Observed.of(cluster, *resources.snapshot(cluster)))
    assert (found.apply, found.resize, found.delete, found.reasons) == ((), (), (), ())
    assert found.roll.complete


def test_a_foreign_edit_is_put_back_and_told() -> None:
    cluster = resources.cluster()
    children, pods = resources.snapshot(cluster)
    (role,) = (child for child in children if child["kind"] == "Role")
    role["rules"].append({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]})
    found = planned(cluster, Observed.of(cluster, children, pods))
    assert [item["kind"] for item in found.apply] == ["Role"]
    assert [reason.reason for reason in found.reasons] == ["EditUndone"]


def test_a_changed_field_of_the_spec_is_applied_without_a_word_of_edits() -> None:
    before = resources.cluster()
    after = resources.cluster(router={"replicas": 3})
    found = planned(after, Observed.of(after, *resources.snapshot(before)))
    assert [item["kind"] for item in found.apply] == ["Deployment"]
    assert found.reasons == ()


def test_nothing_is_written_while_a_refusal_stands() -> None:
    cluster = resources.cluster(**NEW, status=_status(OLD))
    observed = _both(cluster, (OLD, [resources.READY] * 2))
    found = planned(cluster, observed, Refusal("PrefillReady", "OwnedArgument", "no"))
    assert (found.apply, found.resize, found.delete) == ((), (), ())
    assert found.roll.serving == _revision(OLD)


def test_the_old_revision_stays_while_the_new_one_is_not_complete() -> None:
    cluster = resources.cluster(**NEW, status=_status(OLD))
    observed = _both(cluster, (OLD, [resources.READY] * 2), (NEW, [resources.READY, LOADING]))
    found = planned(cluster, observed)
    assert (found.resize, found.delete) == ((), ())
    assert found.roll.serving == _revision(OLD)
    assert [item.revision for item in found.roll.keep] == [_revision(OLD)]


def test_the_revision_that_served_stays_even_when_its_engines_are_not_ready_now() -> None:
    cluster = resources.cluster(**NEW, status=_status(OLD))
    observed = _both(cluster, (OLD, [LOADING] * 2), (NEW, [LOADING] * 2))
    found = planned(cluster, observed)
    assert found.resize == ()
    assert found.roll.serving == _revision(OLD)


def test_the_old_revision_is_emptied_when_the_new_one_is_complete() -> None:
    cluster = resources.cluster(**NEW, status=_status(OLD))
    observed = _both(cluster, (OLD, [resources.READY] * 2), (NEW, [resources.READY] * 2))
    found = planned(cluster, observed)
    assert [step.act for step in found.drains.steps] == ["annotate"] * 2
    assert (found.resize, found.delete) == ((), ())
    assert found.roll.serving == _revision(NEW)
    assert [reason.reason for reason in found.reasons] == ["DrainStarted"] * 2
    told = found.reasons[0].message
    assert told.endswith(f"revision {_revision(NEW)} is ready")


def test_routers_change_when_the_engines_they_speak_to_do() -> None:
    spec = {**NEW, "pic": {"separator": "##"}}
    cluster = resources.cluster(**spec, status=_status(OLD))
    rolling = _both(cluster, (OLD, [resources.READY] * 2), (spec, [LOADING] * 2))
    before, _ = resources.snapshot(resources.cluster(**OLD))
    routers = [child for child in before if child["kind"] == "Deployment"]
    others = [child.live for child in rolling.children if child.kind != "Deployment"]
    old, new = ("demo-both-" + _revision(part) for part in (OLD, spec))

    def applied(status: dict[str, Any]) -> list[str]:
        sets = {child.name: child.live for child in rolling.children}
        pods = [resources.pod(sets[old], f"{old}-{n}", resources.READY) for n in range(2)]
        pods += [resources.pod(sets[new], f"{new}-{n}", status) for n in range(2)]
        observed = Observed.of(cluster, [*others, *routers], pods)
        return [item["kind"] for item in planned(cluster, observed).apply]

    assert "Deployment" not in applied(LOADING)
    assert "Deployment" in applied(resources.READY)


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
    found = planned(cluster, Observed.of(cluster, [*new, *old], [*pods, *ending]))
    assert found.resize == ()
    assert len(found.delete) == deleted
    assert [reason.reason for reason in found.reasons] == ["RevisionRetired"] * deleted


def test_a_revision_that_never_came_up_goes_and_holds_nobody_back() -> None:
    cluster = resources.cluster(**NEW, status=_status(OLD))
    crashing = resources.crashed(1, "boom")
    observed = _both(
        cluster,
        (OLD, [resources.READY] * 2),
        (OTHER, [crashing] * 2),
        (NEW, [LOADING] * 2),
    )
    found = planned(cluster, observed)
    assert [(to.name, to.replicas) for to in found.resize] == [(f"demo-both-{_revision(OTHER)}", 0)]
    assert [item.revision for item in found.roll.keep] == [_revision(OLD)]


def test_taking_a_change_back_retires_what_it_made() -> None:
    cluster = resources.cluster(**OLD, status=_status(OLD))
    crashing = resources.crashed(1, "boom")
    observed = _both(cluster, (OLD, [resources.READY] * 2), (NEW, [crashing] * 2))
    found = planned(cluster, observed)
    assert found.roll.complete
    assert [ref.name for ref in found.resize] == [f"demo-both-{_revision(NEW)}"]


def test_with_its_status_lost_the_ready_revision_is_known_as_serving_dynamo_13620() -> None:
    cluster = resources.cluster(**NEW)
    found = plan.where(cluster, _both(cluster, (OLD, [resources.READY] * 2)), None)
    assert found.serving == _revision(OLD)


def test_a_serving_revision_that_somebody_deleted_is_not_said_to_serve() -> None:
    cluster = resources.cluster(**NEW, status=_status(OLD))
    assert plan.where(cluster, Observed(), None).serving == ""


def test_what_was_made_under_another_name_is_deleted() -> None:
    cluster = resources.cluster()
    children, pods = resources.snapshot(cluster)
    (service, *_) = (child for child in children if child["kind"] == "Service")
    stray = {**service, "metadata": {**service["metadata"], "name": "earlier", "uid": "s"}}
    found = planned(cluster, Observed.of(cluster, [*children, stray], pods))
    assert [(ref.kind, ref.name, ref.uid) for ref in found.delete] == [("Service", "earlier", "s")]


@pytest.mark.parametrize("leaving", [True, False])
def test_an_object_of_another_owner_is_left_alone(leaving: bool) -> None:
    cluster = resources.cluster(uid="uid-2")
    children, pods = resources.snapshot(resources.cluster(uid="uid-1"))
    if leaving:
        for child in children:
            child["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = planned(cluster, Observed.of(cluster, children, pods))
    assert (found.apply, found.resize, found.delete) == ((), (), ())
    assert found.taken is not None
    assert found.taken.reason == "NameTaken"
    assert ("still going" in found.taken.message) is leaving


def test_an_own_object_that_is_going_is_waited_for() -> None:
    cluster = resources.cluster()
    children, pods = resources.snapshot(cluster)
    (service, *_) = (child for child in children if child["kind"] == "Service")
    service["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    service["spec"] = {}
    assert planned(cluster, Observed.of(cluster, children, pods)).apply == ()


def test_what_no_watch_tells_is_looked_at_soon() -> None:
    cluster = resources.cluster()
    whole = Observed.of(cluster, *resources.snapshot(cluster))
    short = Observed.of(cluster, *resources.snapshot(cluster, pods={}))
    blocked = Blocked("router", "NameTaken", "taken")
    at_rest = planned(cluster, whole)
    assert plan.look_again_in_s(whole, at_rest, None) == float("inf")
    assert plan.look_again_in_s(short, planned(cluster, short), None) == plan.SOON_S
    assert plan.look_again_in_s(whole, at_rest, blocked) == plan.SOON_S
    fewer = resources.cluster(prefill={"replicas": 1})
    two = resources.snapshot(resources.cluster(prefill={"replicas": 2}))
    shrinking = Observed.of(fewer, *two)
    assert plan.look_again_in_s(shrinking, planned(fewer, shrinking), None) == drain.LOOK_AGAIN_S


def test_a_role_keeps_its_number_until_its_last_engine_has_drained() -> None:
    fewer = resources.cluster(prefill={"replicas": 1})
    children, pods = resources.snapshot(resources.cluster(prefill={"replicas": 3}))
    observed = Observed.of(fewer, children, pods)
    assert _sizes(planned(fewer, observed)) == []
    for pod in pods[1:]:
        pod["metadata"]["annotations"] = {"serving.hypic.dev/drain": "2026-11-30T12:00:50+00:00"}
    observed = Observed.of(fewer, children, pods)
    busy, empty = (Heard(False, Progress(True, running=n, oldest_s=3.0)) for n in (1, 0))
    names = [pod["metadata"]["name"] for pod in pods]
    heard = {names[1]: busy, names[2]: empty}
    found = planned(fewer, observed, heard=heard)
    assert _sizes(found) == [2]
    assert [(why.reason, why.about) for why in found.reasons] == [
        ("Drained", f"StatefulSet/{names[1][:-2]}")
    ]
    found = planned(fewer, observed, heard={names[1]: empty, names[2]: busy})
    assert _sizes(found) == []
    found = planned(fewer, observed, heard={names[1]: empty, names[2]: empty})
    assert _sizes(found) == [1]


def test_an_engine_whose_time_is_up_is_stopped_and_said_to_be() -> None:
    fewer = resources.cluster(prefill={"replicas": 1})
    children, pods = resources.snapshot(resources.cluster(prefill={"replicas": 2}))
    pods[1]["metadata"]["annotations"] = {"serving.hypic.dev/drain": "2026-11-30T12:00:00+00:00"}
    heard = {pods[1]["metadata"]["name"]: Heard(False, Progress(True, running=2, oldest_s=70))}
    found = planned(fewer, Observed.of(fewer, children, pods), heard=heard)
    (why,) = found.reasons
    assert (why.reason, why.alarming) == ("DrainTimedOut", True)
    assert "2 streams, oldest 70 s left" in why.message


def test_a_scale_down_that_is_taken_back_opens_the_engine_again() -> None:
    cluster = resources.cluster(prefill={"replicas": 2})
    children, pods = resources.snapshot(cluster)
    pods[1]["metadata"]["annotations"] = {"serving.hypic.dev/drain": "2026-11-30T12:00:50+00:00"}
    found = planned(cluster, Observed.of(cluster, children, pods))
    assert [(step.act, step.pod.ordinal) for step in found.drains.steps] == [("reopen", 1)]
    assert [why.reason for why in found.reasons] == ["DrainCancelled"]
    assert found.apply == ()


def test_a_refusal_opens_what_was_to_go() -> None:
    fewer = resources.cluster(prefill={"replicas": 1})
    children, pods = resources.snapshot(resources.cluster(prefill={"replicas": 2}))
    pods[1]["metadata"]["annotations"] = {"serving.hypic.dev/drain": "2026-11-30T12:00:50+00:00"}
    refusal = Refusal("PrefillReady", "OwnedArgument", "no")
    found = planned(fewer, Observed.of(fewer, children, pods), refusal)
    assert [step.act for step in found.drains.steps] == ["reopen"]
    assert (found.apply, found.resize) == ((), ())


def test_a_role_that_is_removed_leaves_nothing_behind_dynamo_3379() -> None:
    pair = resources.cluster(decode={})
    children, pods = resources.snapshot(pair)
    alone = resources.cluster(status=pair.status)
    made, started = resources.snapshot(alone)
    both = {(item["kind"], item["metadata"]["name"]): item for item in (*children, *made)}
    observed = Observed.of(alone, list(both.values()), [*pods, *started])
    found = planned(alone, observed)
    of_pair = {item["metadata"]["name"] for item in children} - {
        item["metadata"]["name"] for item in made
    }
    going = {ref.name for ref in (*found.delete, *found.resize)}
    going |= {step.pod.engine_set for step in found.drains.steps}
    assert any("decode" in name for name in of_pair)
    assert going == of_pair
