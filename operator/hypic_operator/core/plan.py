"""What to write now: (resource, what runs, what is wanted) -> Plan, with its reasons.

Does not write, and does not remember: asked again after a crash it gives what is left to do.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from . import difference, names
from .api import HypicCluster
from .desired import engine, role
from .difference import Manifest
from .observed import Child, EngineSet, Observed
from .refusals import Refusal

SOON_S = 3.0


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something is done, told as an event.

    Attributes:
        reason: CamelCase word.
        message: for people.
        about: the object, as `kind/name`, that must really have changed for it to be told.
    """

    reason: str
    message: str
    about: str = ""


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
    """An object to be deleted or scaled."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Roll:
    """Where the engines are on the way from one revision to another.

    Attributes:
        wanted: the revision that the spec asks for.
        serving: the revision that requests are served from; empty before the first is ready.
        complete: whether all engines of the wanted revision are ready, in every role.
        keep: sets of other revisions that stay until then.
        retire: sets of other revisions that go.
    """

    wanted: str
    serving: str
    complete: bool
    keep: tuple[EngineSet, ...] = ()
    retire: tuple[EngineSet, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What to write now.

    Attributes:
        roll: where the engines are.
        apply: manifests that differ from what is there, in order.
        idle: sets that are told to have no pods any more.
        delete: objects that are not wanted any more.
        taken: why something cannot be made, by what others own.
        reasons: what is done, for events.
    """

    roll: Roll
    apply: tuple[Manifest, ...] = ()
    idle: tuple[Ref, ...] = ()
    delete: tuple[Ref, ...] = ()
    taken: Blocked | None = None
    reasons: tuple[Reason, ...] = ()


def roll(cluster: HypicCluster, observed: Observed) -> Roll:
    """Which revision serves, and which sets stay for it.

    A set of another revision stays while the wanted one is not complete, if it is the one that
    served last or has ready engines; a revision that never came up holds nobody back.
    """
    wanted = engine.revision(cluster)
    sets = {item.name: item for item in observed.sets()}
    present = {
        name: sets.pop(names.engine_set(cluster, name, wanted), None) for name in cluster.spec.roles
    }
    complete = all(
        item is not None and item.ready >= role.replicas(cluster, name, observed)
        for name, item in present.items()
    )
    before = str(cluster.status.get("prefill", {}).get("revision", ""))
    others = tuple(sets[name] for name in sorted(sets))
    if complete:
        return Roll(wanted, wanted, complete=True, retire=others)
    keep = tuple(item for item in others if item.ready or item.revision == before)
    if before not in {wanted, *(item.revision for item in keep)}:
        before = next((item.revision for item in keep), "")
    retire = tuple(item for item in others if item not in keep)
    return Roll(wanted, before, complete=False, keep=keep, retire=retire)


def plan(
    cluster: HypicCluster,
    observed: Observed,
    wanted: Sequence[Manifest],
    refusal: Refusal | None,
) -> Plan:
    """What to write now; nothing while a refusal stands, so that what serves goes on serving."""
    where = roll(cluster, observed)
    if refusal is not None:
        return Plan(where)
    signed = tuple(difference.signed(manifest) for manifest in wanted)
    taken = next((c for c in (_child(observed, m) for m in signed) if c and not c.owned), None)
    changed = tuple(
        manifest
        for manifest in signed
        if _changes(_child(observed, manifest), manifest) and not _early(observed, where, manifest)
    )
    idle = tuple(_ref(observed, item) for item in where.retire if item.replicas)
    empty = tuple(_ref(observed, item) for item in where.retire if not item.replicas | item.present)
    return Plan(
        where,
        apply=changed,
        idle=idle,
        delete=(*empty, *_unwanted(observed, signed)),
        taken=None if taken is None else _taken(taken),
        reasons=_reasons(observed, where, changed),
    )


def look_again_in_s(observed: Observed, blocked: Blocked | None) -> float:
    """Seconds until a look without a cause: soon for what no watch would tell."""
    return SOON_S if observed.short() or blocked is not None else float("inf")


def component_of(manifest: Manifest) -> str:
    """The component that an object is part of."""
    return str(manifest["metadata"].get("labels", {}).get(names.LABEL_COMPONENT, "prefill"))


def _child(observed: Observed, manifest: Manifest) -> Child | None:
    return observed.child(manifest["kind"], manifest["metadata"]["name"])


def _changes(child: Child | None, manifest: Manifest) -> bool:
    if child is None:
        return True
    return child.owned and not child.leaving and not difference.settled(child.live, manifest)


def _early(observed: Observed, where: Roll, manifest: Manifest) -> bool:
    """Routers speak to the engines that serve: theirs change when the new revision is complete."""
    there = _child(observed, manifest) is not None
    return bool(there and where.keep and manifest["kind"] == "Deployment")


def _unwanted(observed: Observed, wanted: Sequence[Manifest]) -> tuple[Ref, ...]:
    """Children of an earlier version, or with an earlier name; engine sets have their roll."""
    kept = {(item["kind"], item["metadata"]["name"]) for item in wanted}
    return tuple(
        Ref(child.kind, child.name, child.live["metadata"]["uid"])
        for child in observed.children
        if child.owned and not child.leaving and child.kind != "StatefulSet"
        if (child.kind, child.name) not in kept
    )


def _ref(observed: Observed, item: EngineSet) -> Ref:
    child = observed.child("StatefulSet", item.name)
    return Ref("StatefulSet", item.name, child.live["metadata"]["uid"] if child else "")


def _taken(child: Child) -> Blocked:
    message = (
        f"{child.kind} {child.name} of an earlier cluster is still going"
        if child.leaving
        else f"{child.kind} {child.name} belongs to somebody else; delete it or give the "
        f"HypicCluster another name"
    )
    return Blocked(component_of(child.live), "NameTaken", message)


def _reasons(observed: Observed, where: Roll, changed: Sequence[Manifest]) -> tuple[Reason, ...]:
    reasons = []
    for manifest in changed:
        child = _child(observed, manifest)
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        about = f"{kind}/{name}"
        if child is None and kind == "StatefulSet":
            beside = ", ".join(item.revision for item in where.keep)
            said = f" beside {beside}, which keeps serving" if beside else ""
            words = f"Started revision {where.wanted}{said}"
            reasons.append(Reason("RevisionStarted", words, about))
        elif child is not None and difference.same_fingerprint(child.live, manifest):
            words = f"Put back what somebody changed in {kind} {name}"
            reasons.append(Reason("EditUndone", words, about))
    for item in (item for item in where.retire if item.replicas):
        why = f"{where.wanted} is ready" if where.complete else "it never became ready"
        words = f"Stopped revision {item.revision}: {why}"
        reasons.append(Reason("RevisionRetired", words))
    return tuple(reasons)
