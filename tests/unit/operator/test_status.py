from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from hypic_operator.core import serving, status
from hypic_operator.core.desired import engine
from hypic_operator.core.facts import Condition
from hypic_operator.core.loading import Progress
from hypic_operator.core.observed import Observed
from hypic_operator.core.plan import Blocked

from ...support import resources
from ...support.facts import NONE, NOW
from ...support.facts import conditions as _conditions
from ...support.facts import facts as _facts
from ...support.facts import pods as _pods
from ...support.facts import whole as _whole

EARLIER = NOW - timedelta(hours=1)


def _router_pod(state: Any) -> dict[str, Any]:
    labels = {"app.kubernetes.io/component": "router"}
    return {"metadata": {"name": "demo-x", "labels": labels}, "status": state}


def test_all_ready_and_a_token_is_ready() -> None:
    cluster = resources.cluster()
    found = _conditions(_facts(cluster, _whole(cluster)))
    assert {kind: item.status for kind, item in found.items()} == {
        "Ready": "True",
        "Progressing": "False",
        "Degraded": "False",
        "ModelReady": "True",
        "PrefillReady": "True",
        "RouterReady": "True",
        "Serving": "True",
    }
    assert found["Progressing"].reason == "Settled"


def test_before_anything_is_made_it_is_starting() -> None:
    found = _conditions(_facts(resources.cluster(), Observed()))
    assert found["Ready"].reason == "Starting"
    assert found["ModelReady"].reason == "NoEngine"
    assert found["RouterReady"].reason == "Starting"
    assert found["Serving"].reason == "NoEngineReady"
    assert found["Progressing"] == Condition(
        "Progressing",
        "True",
        "Starting",
        f"revision {engine.revision(resources.cluster())} is starting",
    )


def test_an_engine_that_leaves_is_said_to_leave_until_its_place_is_free() -> None:
    cluster = resources.cluster()
    children, pods = resources.snapshot(cluster)
    pods[0]["metadata"]["deletionTimestamp"] = "2026-11-29T12:00:00Z"
    found = _conditions(_facts(cluster, Observed.of(cluster, children, pods)))
    assert found["PrefillReady"].reason == found["ModelReady"].reason == "Leaving"
    assert found["PrefillReady"].message == (
        "0 of 1 engines are ready; 1 finish their streams first, then others start"
    )
    gone = _conditions(_facts(cluster, Observed.of(cluster, children, [])))
    assert gone["PrefillReady"].reason == "Starting"


def test_the_reason_of_a_pod_is_the_reason_of_the_cluster_kserve_1859() -> None:
    cluster = resources.cluster()
    pods = _pods(cluster, resources.crashed(1, "ModelError: no config.json"))
    found = _conditions(_facts(cluster, _whole(cluster, pods=pods)))
    for kind in ("Ready", "PrefillReady", "ModelReady", "Progressing"):
        assert found[kind].status == "False"
        assert found[kind].reason == "CrashLoopBackOff"
    assert "no config.json" in found["Ready"].message
    assert "is stuck" in found["Progressing"].message


def test_some_engines_ready_are_counted_and_the_model_is_loaded() -> None:
    cluster = resources.cluster(prefill={"replicas": 2})
    pods = _pods(cluster, resources.READY, resources.loading())
    found = _conditions(_facts(cluster, _whole(cluster, pods=pods)))
    assert found["PrefillReady"].message.startswith("1 of 2 engines are ready: ")
    assert found["ModelReady"].status == "True"
    assert found["Serving"].status == "True"
    assert found["Ready"].reason == "Loading"


def test_an_engine_that_loads_says_since_when_and_when_it_should_be_ready() -> None:
    since = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:01:35Z"}
    ready = {**resources.READY, "conditions": [since]}
    cluster = resources.cluster(prefill={"replicas": 2})
    facts = _facts(cluster, _whole(cluster, pods=_pods(cluster, ready, resources.loading())))
    said = _conditions(facts)["PrefillReady"].message
    assert "is loading the model (since 00:00:00 UTC; it took 95 s before" in said
    assert "it should have been ready about 00:01:35 UTC" in said
    written = status.status(facts)
    assert written["prefill"]["loadSeconds"] == 95
    # Asleep since, it is still known what a load takes.
    digits = engine.revision(cluster)
    served = {"prefill": {"revision": digits, "loadSeconds": 95}}
    cluster = resources.cluster(prefill={"replicas": 1}, status=served)
    observed = _whole(cluster, pods=_pods(cluster, resources.loading()))
    assert "took 95 s" in _conditions(_facts(cluster, observed))["ModelReady"].message


def test_an_engine_that_loads_says_how_far_it_is() -> None:
    cluster = resources.cluster()
    facts = _facts(cluster, _whole(cluster, pods=_pods(cluster, resources.loading())))
    (pod,) = facts.observed.of_component("prefill")
    at = datetime.fromisoformat("2026-01-01T00:00:40Z")
    said = {pod.uid: Progress("weights", 40, at, 0, at - timedelta(seconds=40))}
    facts = replace(facts, now=at)
    assert _conditions(replace(facts, progress=said))["Ready"].message.endswith(
        "is loading the model (since 00:00:00 UTC; 40 % of the weights are read; "
        "at this pace all of it is there about 00:01:40 UTC)"
    )


def test_pods_that_a_quota_forbids_are_told() -> None:
    cluster = resources.cluster()
    name = f"demo-both-{engine.revision(cluster)}"
    observed = _whole(cluster, pods={}).explained({name: "exceeded quota: small"}, {})
    found = _conditions(_facts(cluster, observed))
    assert found["Ready"].reason == "QuotaExceeded"
    assert found["Progressing"].reason == "QuotaExceeded"


def test_routers_that_are_not_ready_say_why() -> None:
    cluster = resources.cluster()
    children, pods = resources.snapshot(cluster, routers_ready=0)
    missing = _router_pod(resources.waiting("ErrImagePull", "no such router"))
    found = _conditions(_facts(cluster, Observed.of(cluster, children, [*pods, missing])))
    assert found["RouterReady"].reason == "ImagePullBackOff"
    assert found["Serving"].reason == "NoRouterReady"
    assert found["Progressing"].message == "the routers are stuck"
    unready = _router_pod(resources.loading("router", started=True))
    found = _conditions(_facts(cluster, Observed.of(cluster, children, [*pods, unready])))
    assert found["RouterReady"].reason == "Starting"
    assert "demo-x runs and does not take requests yet" in found["RouterReady"].message
    silent = _router_pod(resources.silent("router"))
    found = _conditions(_facts(cluster, Observed.of(cluster, children, [*pods, silent])))
    assert found["RouterReady"].reason == "NotAnswering"
    found = _conditions(_facts(cluster, Observed.of(cluster, children, pods)))
    assert found["RouterReady"].message == "0 of 2 routers are ready"
    assert found["Progressing"].reason == "RouterStarting"


def test_routers_are_ready_without_an_engine() -> None:
    cluster = resources.cluster()
    found = _conditions(_facts(cluster, _whole(cluster, pods={})))
    assert found["RouterReady"].status == "True"
    assert found["Serving"].reason == "NoEngineReady"


def test_a_failed_router_that_has_been_replaced_is_no_trouble() -> None:
    cluster = resources.cluster()
    children, pods = resources.snapshot(cluster, routers_ready=1)
    evicted = _router_pod({"phase": "Failed", "reason": "Evicted", "message": "disk full"})
    found = _conditions(_facts(cluster, Observed.of(cluster, children, [*pods, evicted])))
    assert found["RouterReady"].reason == "Starting"
    assert found["Progressing"].reason == "RouterStarting"


def test_an_engine_that_falls_silent_takes_the_cluster_with_it() -> None:
    cluster = resources.cluster()
    pods = _pods(cluster, resources.silent())
    found = _conditions(_facts(cluster, _whole(cluster, pods=pods)))
    for kind in ("Ready", "PrefillReady", "Progressing"):
        assert found[kind].reason == "NotAnswering"
    assert "deleting the pod" in found["Ready"].message


def test_a_router_that_cannot_be_made_says_why() -> None:
    cluster = resources.cluster()
    children, pods = resources.snapshot(cluster, routers_ready=0)
    (deployment,) = (child for child in children if child["kind"] == "Deployment")
    failure = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: small"}
    deployment["status"]["conditions"] = [failure]
    found = _conditions(_facts(cluster, Observed.of(cluster, children, pods)))
    assert found["RouterReady"].reason == "QuotaExceeded"


@pytest.mark.parametrize(
    "spec",
    [
        {"prefill": {"template": {"engine": {"extraArgs": ["--port=1"]}}}},
        {"model": {"name": "m", "source": {"hostPath": {"path": "/m"}}}},
    ],
)
def test_a_refusal_is_told_and_what_serves_is_named(spec: dict[str, Any]) -> None:
    old = resources.cluster()
    kept = {"prefill": {"revision": engine.revision(old)}}
    cluster = resources.cluster(**spec, status=kept)
    found = _conditions(_facts(cluster, Observed.of(cluster, *resources.snapshot(old))))
    assert found["Ready"].reason in {"OwnedArgument", "HostPathNotAllowed"}
    assert f"revision {engine.revision(old)} still serves" in found["PrefillReady"].message
    assert found["Serving"].status == "True"
    assert found["Progressing"].message == "nothing is changed until the spec is"


def test_a_refusal_at_the_first_try_names_no_revision() -> None:
    cluster = resources.cluster(prefill={"template": {"engine": {"extraArgs": ["--port=1"]}}})
    found = _conditions(_facts(cluster, Observed()))
    assert "serves" not in found["PrefillReady"].message


def test_a_stuck_roll_says_that_the_old_revision_serves() -> None:
    old = resources.cluster()
    digits = engine.revision(old)
    cluster = resources.cluster(pic={"seam": 16}, status={"prefill": {"revision": digits}})
    before, ready = resources.snapshot(old)
    pods = _pods(cluster, resources.waiting("ErrImagePull", "not found"))
    after, waiting = resources.snapshot(cluster, pods=pods)
    children = {(item["kind"], item["metadata"]["name"]): item for item in (*before, *after)}
    observed = Observed.of(cluster, list(children.values()), [*ready, *waiting])
    found = _conditions(_facts(cluster, observed))
    assert found["Ready"].reason == "ImagePullBackOff"
    assert f"revision {digits} still serves, 1 ready" in found["Ready"].message
    assert found["Serving"].status == "True"
    written = status.status(_facts(cluster, observed))
    assert written["prefill"] == {"desired": 1, "ready": 0, "summary": "0/1", "revision": digits}


def test_an_old_revision_that_ends_is_told_as_progress() -> None:
    old = resources.cluster()
    cluster = resources.cluster(pic={"seam": 16})
    before, _ = resources.snapshot(old, pods={})
    after, ready = resources.snapshot(cluster)
    children = {(item["kind"], item["metadata"]["name"]): item for item in (*before, *after)}
    found = _conditions(_facts(cluster, Observed.of(cluster, list(children.values()), ready)))
    assert found["Ready"].status == "True"
    assert found["Progressing"].reason == "Retiring"


@pytest.mark.parametrize(
    ("component", "kind"), [("prefill", "PrefillReady"), ("router", "RouterReady")]
)
def test_what_the_server_refuses_is_told_where_it_belongs(component: str, kind: str) -> None:
    cluster = resources.cluster()
    blocked = Blocked(component, "Invalid", "StatefulSet demo was refused: no")
    found = _conditions(_facts(cluster, _whole(cluster), blocked=blocked))
    assert found[kind].reason == "Invalid"
    assert found["Ready"].reason == "Invalid"
    assert found["Progressing"].reason == "Invalid"


def test_serving_waits_for_the_first_answer_and_keeps_what_was_known() -> None:
    cluster = resources.cluster()
    facts = _facts(cluster, _whole(cluster), record=serving.Record())
    assert _conditions(facts)["Serving"].reason == "NotAsked"
    before = {"type": "Serving", "status": "True", "reason": "TokenReceived", "message": "m"}
    known = resources.cluster(status={"conditions": [before]})
    facts = _facts(known, _whole(known), record=serving.Record())
    assert _conditions(facts)["Serving"] == Condition("Serving", "True", "TokenReceived", "m")


def test_no_token_is_not_ready() -> None:
    cluster = resources.cluster()
    record = serving.Record().with_answer(NONE, now_s=0.0, ready=frozenset())
    found = _conditions(_facts(cluster, _whole(cluster), record=record))
    assert found["Ready"] == Condition("Ready", "False", "NoAnswer", "Serving: no answer")


def test_a_request_is_sent_only_where_it_could_be_answered() -> None:
    cluster = resources.cluster()
    assert status.reachable(cluster, _whole(cluster))
    assert not status.reachable(cluster, Observed())
    assert not status.reachable(cluster, _whole(cluster, routers_ready=0))
    assert not status.reachable(cluster, _whole(cluster, pods={}))


def test_before_the_first_revision_is_complete_none_serves() -> None:
    written = status.status(_facts(resources.cluster(), Observed()))
    assert written["prefill"] == {"desired": 1, "ready": 0, "summary": "0/1"}
    assert written["url"] == "http://demo.default.svc:80"


def test_the_time_of_a_condition_moves_only_with_its_status() -> None:
    cluster = resources.cluster()
    first = status.status(_facts(cluster, _whole(cluster), now=EARLIER))
    again = resources.cluster(status=first, generation=2)
    second = status.status(_facts(again, _whole(again)))
    times = {item["type"]: item["lastTransitionTime"] for item in second["conditions"]}
    assert set(times.values()) == {"2026-11-29T11:00:00Z"}
    assert {item["observedGeneration"] for item in second["conditions"]} == {2}
    lost = status.status(_facts(again, _whole(again, pods={})))
    times = {item["type"]: item["lastTransitionTime"] for item in lost["conditions"]}
    assert times["Ready"] == "2026-11-29T12:00:00Z"
    assert times["RouterReady"] == "2026-11-29T11:00:00Z"


def test_only_a_change_of_ready_is_news() -> None:
    cluster = resources.cluster()
    first = status.status(_facts(cluster, _whole(cluster)))
    assert [(item.reason, item.alarming) for item in status.news(cluster, first)] == [
        ("Serving", False)
    ]
    assert status.news(resources.cluster(status=first), first) == ()


@pytest.mark.parametrize(("reason", "alarming"), [("Loading", False), ("OOMKilled", True)])
def test_what_ends_by_itself_alarms_nobody(reason: str, alarming: bool) -> None:
    ready = {"type": "Ready", "status": "False", "reason": reason, "message": "m"}
    (found,) = status.news(resources.cluster(), {"conditions": [ready]})
    assert found.alarming is alarming


def _pair(*prefill: Any, decode: Any) -> dict[str, Condition]:
    """Conditions of a pair whose engines are like this."""
    cluster = resources.cluster(decode={}, prefill={"replicas": len(prefill)})
    digits = engine.revision(cluster)
    pods = {f"demo-prefill-{digits}-{n}": item for n, item in enumerate(prefill)}
    pods[f"demo-decode-{digits}-0"] = decode
    return _conditions(_facts(cluster, _whole(cluster, pods=pods)))


def test_each_role_of_a_pair_has_its_own_condition() -> None:
    found = _pair(resources.READY, resources.READY, decode=resources.loading())
    assert found["PrefillReady"].message == "2 of 2 engines are ready"
    assert (found["DecodeReady"].status, found["DecodeReady"].reason) == ("False", "Loading")
    assert found["DecodeReady"].message.startswith("0 of 1 engines are ready: demo-decode-")
    assert found["Ready"].message.startswith("DecodeReady: ")


def test_a_pair_serves_only_when_both_roles_can() -> None:
    whole = _pair(resources.READY, decode=resources.READY)
    assert whole["Ready"].status == "True"
    half = _pair(resources.READY, decode=resources.loading())
    assert (half["Serving"].status, half["Serving"].reason) == ("False", "NoEngineReady")
    other = _pair(resources.loading(), decode=resources.READY)
    assert (other["Serving"].status, other["Serving"].reason) == ("False", "NoEngineReady")


def test_the_status_counts_each_role() -> None:
    cluster = resources.cluster(decode={"replicas": 2})
    found = status.status(_facts(cluster, _whole(cluster)))
    assert found["prefill"]["summary"] == "1/1"
    assert found["decode"]["summary"] == "2/2"
    alone = resources.cluster()
    assert "decode" not in status.status(_facts(alone, _whole(alone)))
