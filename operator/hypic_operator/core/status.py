"""The status of a HypicCluster: what runs, and conditions with reasons people can act on.

Does not write it; written only when it differs from what is there.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from . import engines, names, serving, trouble
from .api import HypicCluster
from .facts import Condition, Facts, State, before
from .observed import Front, Observed
from .reasons import Reason

_PASSING = {
    "Starting",
    "Loading",
    "Downloading",
    "Leaving",
    "Draining",
    "NoEngine",
    "NoEngineReady",
    "NoRouterReady",
    "NotAsked",
}


def status(facts: Facts) -> dict[str, Any]:
    """The status to be written."""
    cluster = facts.cluster
    return {
        "observedGeneration": cluster.metadata.generation,
        "url": names.url(cluster),
        **{name: engines.summary(facts, name) for name in cluster.spec.roles},
        **({"cache": dict(facts.cache)} if facts.cache else {}),
        "conditions": [_dated(facts, condition) for condition in conditions(facts)],
    }


def conditions(facts: Facts) -> tuple[Condition, ...]:
    """The conditions, the one that sums them up first."""
    roles = (engines.condition(facts, name) for name in facts.cluster.spec.roles)
    router = _router(facts)
    parts = (engines.model(facts), *roles, router, _serving(facts))
    sums = (_ready(facts, parts), _progressing(facts, router), _degraded(facts, parts))
    return (*sums, *parts, *engines.scaling(facts))


def reachable(cluster: HypicCluster, observed: Observed) -> bool:
    """Whether a request through the front door could end with a token."""
    front = observed.front(cluster)
    return front is not None and front.ready > 0 and engines.can_serve(cluster, observed)


def servedbefore(cluster: HypicCluster) -> bool:
    """Whether the status that is there says that tokens come back."""
    return before(cluster, "Serving").get("status") == "True"


def news(cluster: HypicCluster, after: Mapping[str, Any]) -> tuple[Reason, ...]:
    """What the condition Ready says, where its status or reason is another now: one event."""
    old = before(cluster, "Ready")
    new = next(item for item in after["conditions"] if item["type"] == "Ready")
    if (new["status"], new["reason"]) == (old.get("status"), old.get("reason")):
        return ()
    # Somebody should look, except at what ends by itself.
    alarming = new["status"] != "True" and new["reason"] not in _PASSING
    return (Reason(new["reason"], new["message"], alarming=alarming),)


def _dated(facts: Facts, condition: Condition) -> dict[str, Any]:
    was, now = before(facts.cluster, condition.type), facts.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    same = was.get("status") == condition.status
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": was["lastTransitionTime"] if same else now,
        "observedGeneration": facts.cluster.metadata.generation,
    }


def _ready(facts: Facts, parts: Sequence[Condition]) -> Condition:
    broken = next((part for part in parts if part.status != "True"), None)
    # The model is not loaded because no engine is ready: the engine's reason says more.
    if broken is not None and broken.type == "ModelReady" and facts.refusal is None:
        broken = next((part for part in parts[1:] if part.status != "True"), broken)
    if broken is None and facts.asleep:
        return Condition("Ready", "True", "Asleep", "the next request wakes the engines")
    if broken is None:
        return Condition(
            "Ready", "True", "Serving", "all engines and routers are ready, tokens come back"
        )
    return Condition("Ready", "False", broken.reason, f"{broken.type}: {broken.message}")


def _degraded(facts: Facts, parts: Sequence[Condition]) -> Condition:
    """Whether something is in the way that does not end by itself; a roll that goes well is not."""
    ends = _PASSING | ({"Unschedulable"} if facts.plan.roll.crowded else set())
    if facts.record.failures < serving.FAILURES_THAT_COUNT:
        ends |= {item.reason for item in parts if item.type == "Serving"}
    lasting = (part for part in parts if part.status != "True")
    found = next((part for part in lasting if part.reason not in ends), None)
    if found is None:
        return Condition("Degraded", "False", "NothingBroken", "nothing waits for anybody to act")
    served = "tokens come back, but " if parts[-1].status == "True" else ""
    return Condition("Degraded", "True", found.reason, f"{served}{found.type}: {found.message}")


def _router(facts: Facts) -> Condition:
    front, replicas = facts.observed.front(facts.cluster), facts.cluster.spec.router.replicas
    blocked = facts.blocked_in("router")
    if blocked is not None:
        return Condition("RouterReady", "False", blocked.reason, blocked.message)
    if front is None:
        return Condition("RouterReady", "False", "Starting", f"0 of {replicas} routers are ready")
    count = f"{front.ready} of {replicas} routers are ready"
    if front.ready >= replicas:
        return Condition("RouterReady", "True", "RoutersReady", count)
    found = _router_trouble(facts, front)
    if found is None:
        return Condition("RouterReady", "False", "Starting", count)
    return Condition("RouterReady", "False", found.reason, f"{count}: {found.message}")


def _router_trouble(facts: Facts, front: Front) -> trouble.Trouble | None:
    made = trouble.quota(front.failure, names.service(facts.cluster)) if front.failure else None
    routers = facts.observed.of_component("router")
    return trouble.worst((made, *(pod.trouble for pod in routers)))


def _serving(facts: Facts) -> Condition:
    front = facts.observed.front(facts.cluster)
    if facts.asleep and servedbefore(facts.cluster):
        return Condition("Serving", "True", "Asleep", "tokens came back before the engines slept")
    if not engines.can_serve(facts.cluster, facts.observed):
        return Condition("Serving", "False", "NoEngineReady", "no engine is ready")
    if front is None or not front.ready:
        return Condition("Serving", "False", "NoRouterReady", "no router is ready")
    was = before(facts.cluster, "Serving")
    answer = serving.verdict(facts.record, served_before=servedbefore(facts.cluster))
    if answer is not None:
        state: State = "True" if answer.token else "False"
        return Condition("Serving", state, answer.reason, answer.message)
    if was.get("status") == "True":
        return Condition("Serving", "True", was["reason"], was["message"])
    return Condition("Serving", "False", "NotAsked", "the first request for a token is on its way")


def _beside(facts: Facts) -> str:
    """What happens to the engines of other revisions meanwhile."""
    words = ""
    if facts.plan.roll.crowded:
        words += f"; old engines make room for it, because {facts.plan.roll.crowded}"
    if facts.plan.drains.going:
        words += f"; draining: {facts.plan.drains.words}"
    return words


def _progressing(facts: Facts, router: Condition) -> Condition:
    where, front = facts.plan.roll, facts.observed.front(facts.cluster)
    if facts.refusal is not None:
        words = "nothing is changed until the spec is"
        return Condition("Progressing", "False", facts.refusal.reason, words)
    if facts.blocked is not None:
        return Condition("Progressing", "False", facts.blocked.reason, facts.blocked.message)
    found = None if where.complete else engines.worst(facts)
    if found is not None and found.lasting:
        return Condition("Progressing", "False", found.reason, f"revision {where.wanted} is stuck")
    if not where.complete:
        words = f"revision {where.wanted} is starting{_beside(facts)}"
        return Condition("Progressing", "True", "Starting", words)
    if facts.plan.drains.going:
        words = f"draining: {facts.plan.drains.words}"
        return Condition("Progressing", "True", "Draining", words)
    if where.retire:
        going = ", ".join(item.revision for item in where.retire)
        return Condition("Progressing", "True", "Retiring", f"revision {going} is being stopped")
    stuck = _router_trouble(facts, front) if front is not None else None
    if stuck is not None and stuck.lasting:
        return Condition("Progressing", "False", stuck.reason, "the routers are stuck")
    rolled = front is not None and front.current and front.updated >= front.replicas
    if router.status != "True" or not rolled:
        return Condition("Progressing", "True", "RouterStarting", "routers are being replaced")
    return Condition("Progressing", "False", "Settled", "everything is as the spec asks")
