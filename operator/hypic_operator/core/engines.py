"""What the status says of the engines, role by role.

Does not know the routers, nor whether tokens come back.
"""

from collections.abc import Mapping
from typing import Any

from . import loading, names, trouble
from .api import HypicCluster, RoleName
from .desired import role
from .facts import Condition, ConditionType, Facts
from .observed import Observed

_TYPES: Mapping[RoleName, ConditionType] = {"prefill": "PrefillReady", "decode": "DecodeReady"}


def summary(facts: Facts, name: RoleName) -> dict[str, Any]:
    """How many engines of a role there are, and of which revision."""
    where = facts.plan.roll
    desired, ready = role.replicas(facts.cluster, name, facts.observed), _ready(facts, name)
    found: dict[str, Any] = {"desired": desired, "ready": ready, "summary": f"{ready}/{desired}"}
    if where.serving:
        found["revision"] = where.serving
    load_s = _load_s(facts, name)
    if load_s is not None:
        found["loadSeconds"] = load_s
    draining = sum(step.pod.component == name for step in facts.plan.drains.going)
    return {**found, "draining": draining} if draining else found


def can_serve(cluster: HypicCluster, observed: Observed) -> bool:
    """Whether every role has an engine that takes requests."""
    return all(any(pod.ready for pod in observed.of_component(name)) for name in cluster.spec.roles)


def worst(facts: Facts, name: RoleName | None = None) -> trouble.Trouble | None:
    """What keeps the wanted revision from being complete, in one role or in any."""
    roles = facts.cluster.spec.roles if name is None else (name,)
    return trouble.worst(_worst(facts, one) for one in roles)


def model(facts: Facts) -> Condition:
    """Whether an engine has loaded the model."""
    refusal = facts.refusal
    if refusal is not None and refusal.condition == "ModelReady":
        return Condition("ModelReady", "False", refusal.reason, refusal.message)
    name = facts.cluster.spec.model.name
    if any(pod.ready for pod in facts.observed.of_component("prefill")):
        return Condition("ModelReady", "True", "Loaded", f"{name} is loaded")
    if facts.asleep:
        return Condition("ModelReady", "True", "Asleep", f"{name} is loaded when somebody asks")
    found = worst(facts, "prefill")
    if found is not None:
        return Condition("ModelReady", "False", found.reason, _said(facts, "prefill", found))
    if _going(facts, "prefill"):
        words = "the engine that had loaded it is leaving; the next one starts when it is gone"
        return Condition("ModelReady", "False", "Leaving", words)
    return Condition("ModelReady", "False", "NoEngine", "there is no engine yet that could load it")


def condition(facts: Facts, name: RoleName) -> Condition:
    """Whether all engines of a role are ready."""
    kind, where = _TYPES[name], facts.plan.roll
    kept = sum(item.ready for item in where.keep if item.component == name)
    beside = f"; revision {where.serving} still serves, {kept} ready" if kept else ""
    refusal = facts.refusal
    if refusal is not None:
        stays = f"; revision {where.serving} still serves" if where.serving else ""
        return Condition(kind, "False", refusal.reason, f"{refusal.message}{stays}")
    blocked = facts.blocked_in(name)
    if blocked is not None:
        return Condition(kind, "False", blocked.reason, f"{blocked.message}{beside}")
    desired, ready = role.replicas(facts.cluster, name, facts.observed), _ready(facts, name)
    count = f"{ready} of {desired} engines are ready"
    if ready >= desired:
        return Condition(kind, "True", "EnginesReady", count)
    found = worst(facts, name)
    if found is not None:
        said = _said(facts, name, found)
        return Condition(kind, "False", found.reason, f"{count}: {said}{beside}")
    going = _going(facts, name)
    if going:
        words = f"{going} finish their streams first, then others start"
        return Condition(kind, "False", "Leaving", f"{count}; {words}{beside}")
    return Condition(kind, "False", "Starting", f"{count}{beside}")


def scaling(facts: Facts) -> tuple[Condition, ...]:
    """Whether the operator can tell how many engines are needed, where it decides that."""
    if not facts.scaling:
        return ()
    blind = next((item for item in facts.scaling.items() if not item[1].known), None)
    if blind is not None:
        name, decision = blind
        words = f"{name} keeps its {decision.engines} engines, because {decision.message}"
        return (Condition("ScalingReady", "False", decision.reason, words),)
    told = []
    for name in facts.scaling:
        bounds = facts.cluster.spec.roles[name].scaling
        if bounds is not None:
            share = f"{bounds.requests} requests an engine"
            told.append(f"{name} from {bounds.min} to {bounds.max} engines, {share}")
    return (Condition("ScalingReady", "True", "Scaling", "; ".join(told)),)


def _going(facts: Facts, name: RoleName) -> int:
    """Engines of the wanted revision that are being deleted, and whose places are still theirs."""
    return facts.observed.going(names.engine_set(facts.cluster, name, facts.plan.roll.wanted))


def _ready(facts: Facts, name: RoleName) -> int:
    return sum(pod.ready for pod in facts.observed.of_part(name, facts.plan.roll.wanted))


def _said(facts: Facts, name: RoleName, found: trouble.Trouble) -> str:
    """What is wrong; while engines load, since when, how far and for how long still."""
    if found.rank != trouble.Rank.LOADING:
        return found.message
    pods = facts.observed.of_part(name, facts.plan.roll.wanted)
    loads = ((pod.loading, facts.progress.get(pod.uid)) for pod in pods)
    told = loading.words(loads, _load_s(facts, name), now=facts.now)
    return f"{found.message} ({told})" if told else found.message


def _load_s(facts: Facts, name: RoleName) -> int | None:
    """Seconds of the shortest load that was seen of the revision that serves."""
    where, before = facts.plan.roll, facts.cluster.status.get(name, {})
    seen = loading.shortest_s(pod.loading for pod in facts.observed.of_component(name))
    kept = before.get("loadSeconds") if before.get("revision") == where.serving else None
    return min((item for item in (seen, kept) if item is not None), default=None)


def _worst(facts: Facts, name: RoleName) -> trouble.Trouble | None:
    wanted = facts.plan.roll.wanted
    made = names.engine_set(facts.cluster, name, wanted)
    failure = (facts.observed.failures or {}).get(made)
    refused = trouble.quota(failure, made) if failure else None
    return trouble.worst((refused, *(pod.trouble for pod in facts.observed.of_part(name, wanted))))
