"""HypicClusters and the pods that kubelets would report, built for tests."""

import copy
from collections.abc import Mapping
from typing import Any

from hypic_operator.core import desired, difference
from hypic_operator.core.api import HypicCluster
from hypic_operator.core.difference import Manifest
from hypic_operator.core.observed import Observed
from hypic_operator.core.refusals import Policy

POLICY = Policy(router_image="localhost/hypic/router:1", engine_image="localhost/hypic/engine:1")
MODEL = {"name": "tiny", "source": {"pvc": {"claimName": "models", "path": "tiny"}}}


def manifest(name: str = "demo", **spec: Any) -> dict[str, Any]:
    """A HypicCluster as a user writes it; only the model is given unless said."""
    return {
        "apiVersion": "serving.hypic.dev/v1alpha1",
        "kind": "HypicCluster",
        "metadata": {"name": name},
        "spec": {"model": copy.deepcopy(MODEL), **copy.deepcopy(spec)},
    }


def cluster(
    name: str = "demo",
    *,
    namespace: str = "default",
    uid: str = "uid-1",
    generation: int = 1,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> HypicCluster:
    """The same as the operator reads it."""
    body = manifest(name, **spec)
    metadata = {"name": name, "namespace": namespace, "uid": uid, "generation": generation}
    return HypicCluster.model_validate({**body, "metadata": metadata, "status": dict(status or {})})


READY = {
    "phase": "Running",
    "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}],
    "containerStatuses": [
        {
            "name": "engine",
            "image": "e",
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }
    ],
}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    """Status of a pod whose container waits."""
    return _status({"waiting": {"reason": reason, "message": message}})


def crashed(code: int, message: str, *, restarts: int = 3, reason: str = "Error") -> dict[str, Any]:
    """Status of a pod whose container ended and waits to be started again."""
    ended = {"exitCode": code, "reason": reason, "message": message}
    state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    return _status(state, last={"terminated": ended}, restarts=restarts)


def loading(container: str = "engine", *, started: bool = False) -> dict[str, Any]:
    """Status of a pod that runs and is not ready yet."""
    status = _status({"running": {"startedAt": "2026-01-01T00:00:00Z"}})
    status["containerStatuses"][0] |= {"name": container, "started": started}
    return status


def silent(container: str = "engine") -> dict[str, Any]:
    """Status of a pod that was ready and fails its readiness check since."""
    status = loading(container, started=True)
    status["conditions"][1]["lastTransitionTime"] = "2026-01-01T00:05:00Z"
    return status


def unschedulable(message: str) -> dict[str, Any]:
    """Status of a pod that no node takes."""
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
    }
    return {"phase": "Pending", "conditions": [condition]}


def _status(
    state: Mapping[str, Any], *, last: Mapping[str, Any] | None = None, restarts: int = 0
) -> dict[str, Any]:
    container = {
        "name": "engine",
        "image": "localhost/hypic/engine:1",
        "imageID": "",
        "ready": False,
        "restartCount": restarts,
        "state": dict(state),
        "lastState": dict(last or {}),
    }
    conditions = [
        {"type": "PodScheduled", "status": "True"},
        {"type": "Ready", "status": "False"},
    ]
    return {"phase": "Running", "conditions": conditions, "containerStatuses": [container]}


def children(found: HypicCluster, observed: Observed) -> tuple[Manifest, ...]:
    """All that the operator wants for a cluster."""
    return desired.children(found, POLICY, observed)


def snapshot(
    found: HypicCluster,
    *,
    pods: Mapping[str, Mapping[str, Any]] | None = None,
    routers_ready: int | None = None,
    policy: Policy = POLICY,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Children as they stand after the operator has made them, and the pods that came of them.

    Args:
        found: the cluster.
        pods: status of each engine's pod, by name; left out, all of them ready.
        routers_ready: left out, all of them.
        policy: what the operator was started with.
    """
    wanted = desired.children(found, policy, Observed())
    children = [copy.deepcopy(difference.signed(item)) for item in wanted]
    for number, child in enumerate(children):
        child["metadata"]["uid"] = f"{child['kind']}-{number}"
        if child["kind"] == "Deployment":
            replicas = child["spec"]["replicas"]
            ready = replicas if routers_ready is None else routers_ready
            child["status"] = {"availableReplicas": ready, "updatedReplicas": replicas}
    made = {c["metadata"]["name"]: c for c in children if c["kind"] == "StatefulSet"}
    named = {f"{s}-{n}": READY for s in made for n in range(made[s]["spec"]["replicas"])}
    statuses = named if pods is None else pods
    sets = {name: made[name.rpartition("-")[0]] for name in statuses}
    return children, [pod(sets[name], name, status) for name, status in statuses.items()]


def pod(made: Mapping[str, Any], name: str, status: Mapping[str, Any]) -> dict[str, Any]:
    """A pod of a StatefulSet."""
    labels = made["spec"]["template"]["metadata"]["labels"]
    metadata = {"name": name, "labels": labels}
    return {"metadata": metadata, "status": {"podIP": "10.1.2.3", **status}}
