"""The status of a HypicCluster: what runs, and conditions with reasons people can act on.

Does not write it; written only when it differs from what is there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from . import names, serving, trouble
from .api import HypicCluster
from .desired import role
from .observed import Front, Observed
from .plan import Blocked, Plan
from .reasons import Reason
from .refusals import Refusal

ConditionType = Literal[
    "Ready", "Progressing", "ModelReady", "PrefillReady", "RouterReady", "Serving"
]
State = Literal["True", "False", "Unknown"]

_PASSING = {"Starting", "Loading", "NoEngine", "NoEngineReady", "NoRouterReady", "NotAsked"}


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition, without the times that the API wants beside it."""

    type: ConditionType
    status: State
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a status is made of.

    Attributes:
        cluster: the resource, with its last status.
        observed: what runs.
        plan: what is being done.
        refusal: what the spec must change.
        record: answers to requests for a token.
        blocked: what the API server refused to let be written.
    """

    cluster: HypicCluster
    observed: Observed
    plan: Plan
    refusal: Refusal | None
    record: serving.Record
    blocked: Blocked | None = None


def status(facts: Facts, *, now: str) -> dict[str, Any]:
    """The status to be written.

    Args:
        facts: what it is made of.
        now: RFC 3339, for conditions whose status changes.
    """
    cluster, where = facts.cluster, facts.plan.roll
    desired = role.replicas(cluster, "prefill", facts.observed)
    ready = sum(pod.ready for pod in facts.observed.of_revision(where.wanted))
    prefill = {"desired": desired, "ready": ready, "summary": f"{ready}/{desired}"}
    if where.serving:
        prefill["revision"] = where.serving
    if facts.plan.drains.going:
        prefill["draining"] = len(facts.plan.drains.going)
    return {
        "observedGeneration": cluster.metadata.generation,
        "url": names.url(cluster),
        "prefill": prefill,
        "conditions": [_dated(facts, condition, now) for condition in conditions(facts)],
    }


def conditions(facts: Facts) -> tuple[Condition, ...]:
    """The conditions, the one that sums them up first."""
    prefill, router, token = _prefill(facts), _router(facts), _serving(facts)
    parts = (_model(facts), prefill, router, token)
    return (_ready(facts, parts), _progressing(facts, router), *parts)


def reachable(cluster: HypicCluster, observed: Observed) -> bool:
    """Whether a request through the front door could end with a token."""
    front = observed.front(cluster)
    engines = observed.of_component("prefill")
    return front is not None and front.ready > 0 and any(pod.ready for pod in engines)


def served_before(cluster: HypicCluster) -> bool:
    """Whether the status that is there says that tokens come back."""
    return _before(cluster, "Serving").get("status") == "True"


def news(cluster: HypicCluster, after: Mapping[str, Any]) -> tuple[Reason, ...]:
    """What the condition Ready says, where its status or reason is another now: one event."""
    old = _before(cluster, "Ready")
    new = next(item for item in after["conditions"] if item["type"] == "Ready")
    if (new["status"], new["reason"]) == (old.get("status"), old.get("reason")):
        return ()
    # Somebody should look, except at what ends by itself.
    alarming = new["status"] != "True" and new["reason"] not in _PASSING
    return (Reason(new["reason"], new["message"], alarming=alarming),)


def _before(cluster: HypicCluster, kind: str) -> Mapping[str, Any]:
    items: Sequence[Mapping[str, Any]] = cluster.status.get("conditions", ())
    return next((item for item in items if item["type"] == kind), {})


def _dated(facts: Facts, condition: Condition, now: str) -> dict[str, Any]:
    before = _before(facts.cluster, condition.type)
    same = before.get("status") == condition.status
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": before["lastTransitionTime"] if same else now,
        "observedGeneration": facts.cluster.metadata.generation,
    }


def _ready(facts: Facts, parts: Sequence[Condition]) -> Condition:
    broken = next((part for part in parts if part.status != "True"), None)
    # The model is not loaded because no engine is ready: the engine's reason says more.
    if broken is not None and broken.type == "ModelReady" and facts.refusal is None:
        broken = next((part for part in parts[1:] if part.status != "True"), broken)
    if broken is None:
        return Condition(
            "Ready", "True", "Serving", "all engines and routers are ready, tokens come back"
        )
    return Condition("Ready", "False", broken.reason, f"{broken.type}: {broken.message}")


def _engine_trouble(facts: Facts) -> trouble.Trouble | None:
    """What keeps the wanted revision from being complete."""
    wanted = facts.plan.roll.wanted
    name = names.engine_set(facts.cluster, "prefill", wanted)
    failure = (facts.observed.failures or {}).get(name)
    made = trouble.quota(failure, name) if failure else None
    return trouble.worst((made, *(pod.trouble for pod in facts.observed.of_revision(wanted))))


def _blocked(facts: Facts, component: names.Component) -> Blocked | None:
    blocked = facts.blocked
    return blocked if blocked is not None and blocked.component == component else None


def _model(facts: Facts) -> Condition:
    refusal = facts.refusal
    if refusal is not None and refusal.condition == "ModelReady":
        return Condition("ModelReady", "False", refusal.reason, refusal.message)
    engines = facts.observed.of_component("prefill")
    name = facts.cluster.spec.model.name
    if any(pod.ready for pod in engines):
        return Condition("ModelReady", "True", "Loaded", f"{name} is loaded")
    found = _engine_trouble(facts)
    if found is not None:
        return Condition("ModelReady", "False", found.reason, found.message)
    return Condition("ModelReady", "False", "NoEngine", "there is no engine yet that could load it")


def _prefill(facts: Facts) -> Condition:
    where = facts.plan.roll
    replicas = role.replicas(facts.cluster, "prefill", facts.observed)
    ready = sum(pod.ready for pod in facts.observed.of_revision(where.wanted))
    kept = sum(item.ready for item in where.keep)
    beside = f"; revision {where.serving} still serves, {kept} ready" if kept else ""
    refusal = facts.refusal
    if refusal is not None:
        stays = f"; revision {where.serving} still serves" if where.serving else ""
        return Condition("PrefillReady", "False", refusal.reason, f"{refusal.message}{stays}")
    blocked = _blocked(facts, "prefill")
    if blocked is not None:
        return Condition("PrefillReady", "False", blocked.reason, f"{blocked.message}{beside}")
    count = f"{ready} of {replicas} engines are ready"
    if where.complete:
        return Condition("PrefillReady", "True", "EnginesReady", count)
    found = _engine_trouble(facts)
    if found is None:
        return Condition("PrefillReady", "False", "Starting", f"{count}{beside}")
    return Condition("PrefillReady", "False", found.reason, f"{count}: {found.message}{beside}")


def _router(facts: Facts) -> Condition:
    front, replicas = facts.observed.front(facts.cluster), facts.cluster.spec.router.replicas
    blocked = _blocked(facts, "router")
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
    if not any(pod.ready for pod in facts.observed.of_component("prefill")):
        return Condition("Serving", "False", "NoEngineReady", "no engine is ready")
    if front is None or not front.ready:
        return Condition("Serving", "False", "NoRouterReady", "no router is ready")
    before = _before(facts.cluster, "Serving")
    answer = serving.verdict(facts.record, served_before=served_before(facts.cluster))
    if answer is not None:
        state: State = "True" if answer.token else "False"
        return Condition("Serving", state, answer.reason, answer.message)
    if before.get("status") == "True":
        return Condition("Serving", "True", before["reason"], before["message"])
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
    found = None if where.complete else _engine_trouble(facts)
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
