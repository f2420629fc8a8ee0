"""What to write now: (resource, what runs, what is wanted) -> Plan, with its reasons.

Does not write, and does not remember: asked again after a crash it gives what is left to do.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from . import difference, drain, names, reasons, roll
from .api import HypicCluster
from .desired import engine, role
from .difference import Manifest
from .drain import Drains
from .observed import Child, Observed
from .reasons import Reason
from .refusals import Refusal
from .roll import Asked, Roll

SOON_S = 3.0


@dataclass(frozen=True, slots=True)
class Blocked:
    """Something that cannot be written until somebody changes something.

    Attributes:
        component: whose condition tells it.
        reason: CamelCase word.
        message: what to change.
    """

    component: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Ref:
    """An object to be deleted."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Resize:
    """An engine set of another revision that is to have fewer pods."""

    name: str
    uid: str
    replicas: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What to write now.

    Attributes:
        roll: where the engines are.
        drains: pods that are told to finish, or to go on after all.
        apply: manifests that differ from what is there, in order.
        resize: sets of other revisions that are to have fewer pods.
        delete: objects that are not wanted any more.
        taken: why something cannot be made, by what others own.
        reasons: what is done, for events.
    """

    roll: Roll
    drains: Drains
    apply: tuple[Manifest, ...] = ()
    resize: tuple[Resize, ...] = ()
    delete: tuple[Ref, ...] = ()
    taken: Blocked | None = None
    reasons: tuple[Reason, ...] = ()


def where(cluster: HypicCluster, observed: Observed, refusal: Refusal | None) -> Roll:
    """How many engines of which revision there are to be now."""
    wanted = engine.revision(cluster)
    served_last = str(cluster.status.get("prefill", {}).get("revision", ""))
    if refusal is not None:
        return roll.still(observed, wanted, served_last)
    sizes: dict[str, int] = {
        name: role.replicas(cluster, name, observed) for name in cluster.spec.roles
    }
    rollout = cluster.spec.rollout
    asked = Asked(wanted, sizes, rollout.strategy, rollout.max_skew)
    return roll.roll(asked, observed, served_last=served_last)


def plan(
    observed: Observed,
    wanted: Sequence[Manifest],
    refusal: Refusal | None,
    where: Roll,
    drains: Drains,
) -> Plan:
    """What to write now; nothing while a refusal stands, so that what serves goes on serving."""
    if refusal is not None:
        return Plan(where, drains)
    sized = (_sized(manifest, where, drains) for manifest in wanted)
    signed = tuple(difference.signed(manifest) for manifest in sized)
    taken = next((c for c in (_child(observed, m) for m in signed) if c and not c.owned), None)
    changed = tuple(
        manifest
        for manifest in signed
        if _changes(_child(observed, manifest), manifest) and not _early(observed, where, manifest)
    )
    empty = tuple(
        _ref(observed, item.name) for item in where.retire if not (item.replicas or item.present)
    )
    return Plan(
        where,
        drains,
        apply=changed,
        resize=_resized(observed, where, drains),
        delete=(*empty, *_unwanted(observed, signed)),
        taken=None if taken is None else _taken(taken),
        reasons=(
            *reasons.of_objects(observed, where, changed),
            *reasons.of_drains(observed, where, drains),
            *reasons.of_revisions(where, {ref.name for ref in empty}),
        ),
    )


def look_again_in_s(observed: Observed, plan: Plan, blocked: Blocked | None) -> float:
    """Seconds until a look without a cause: soon for what no watch would tell."""
    if plan.drains.going:
        return drain.LOOK_AGAIN_S
    unseen = observed.short() or observed.waiting() or blocked is not None
    return SOON_S if unseen else float("inf")


def component_of(manifest: Manifest) -> str:
    """The component that an object is part of."""
    return str(manifest["metadata"].get("labels", {}).get(names.LABEL_COMPONENT, "prefill"))


def _child(observed: Observed, manifest: Manifest) -> Child | None:
    return observed.child(manifest["kind"], manifest["metadata"]["name"])


def _sized(manifest: Manifest, where: Roll, drains: Drains) -> Manifest:
    """The manifest of a set with the number of pods that it may have now."""
    if manifest["kind"] != "StatefulSet":
        return manifest
    goal = (where.goals or {}).get(component_of(manifest), 0)
    replicas = (drains.sizes or {}).get(manifest["metadata"]["name"], goal)
    return {**manifest, "spec": {**manifest["spec"], "replicas": replicas}}


def _changes(child: Child | None, manifest: Manifest) -> bool:
    if child is None:
        return True
    return child.owned and not child.leaving and not difference.settled(child.live, manifest)


def _early(observed: Observed, where: Roll, manifest: Manifest) -> bool:
    """Routers speak to the engines that serve: theirs change when the new revision is complete."""
    there = _child(observed, manifest) is not None
    return bool(there and where.keep and manifest["kind"] == "Deployment")


def _resized(observed: Observed, where: Roll, drains: Drains) -> tuple[Resize, ...]:
    sizes = drains.sizes or {}
    return tuple(
        Resize(item.name, _ref(observed, item.name).uid, sizes[item.name])
        for item in (*where.keep, *where.retire)
        if sizes.get(item.name, item.replicas) < item.replicas
    )


def _unwanted(observed: Observed, wanted: Sequence[Manifest]) -> tuple[Ref, ...]:
    """Children of an earlier version, or with an earlier name; engine sets have their roll."""
    kept = {(item["kind"], item["metadata"]["name"]) for item in wanted}
    return tuple(
        Ref(child.kind, child.name, child.live["metadata"]["uid"])
        for child in observed.children
        if child.owned and not child.leaving and child.kind != "StatefulSet"
        if (child.kind, child.name) not in kept
    )


def _ref(observed: Observed, name: str) -> Ref:
    child = observed.child("StatefulSet", name)
    return Ref("StatefulSet", name, child.live["metadata"]["uid"] if child else "")


def _taken(child: Child) -> Blocked:
    message = (
        f"{child.kind} {child.name} of an earlier cluster is still going"
        if child.leaving
        else f"{child.kind} {child.name} belongs to somebody else; delete it or give the "
        f"HypicCluster another name"
    )
    return Blocked(component_of(child.live), "NameTaken", message)
