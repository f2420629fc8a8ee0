"""Why things are done, in words that become events.

Does not decide them; an event is told when its object has really changed.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from . import difference
from .difference import Manifest
from .drain import Drains, Step
from .observed import Observed
from .roll import Roll


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something is done, told as an event.

    Attributes:
        reason: CamelCase word.
        message: for people.
        about: the object, as `kind/name`, that must really have changed for it to be told.
        alarming: whether somebody should look.
    """

    reason: str
    message: str
    about: str = ""
    alarming: bool = False


def of_objects(observed: Observed, where: Roll, changed: Sequence[Manifest]) -> Iterator[Reason]:
    """Why objects are made or put back."""
    for manifest in changed:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        child = observed.child(kind, name)
        about = f"{kind}/{name}"
        if child is None and kind == "StatefulSet":
            beside = ", ".join(sorted({item.revision for item in where.keep}))
            said = f" beside {beside}, which keeps serving" if beside else ""
            words = f"Started revision {where.wanted}{said}"
            yield Reason("RevisionStarted", words, about)
        elif child is not None and difference.same_fingerprint(child.live, manifest):
            words = f"Put back what somebody changed in {kind} {name}"
            yield Reason("EditUndone", words, about)


def of_drains(observed: Observed, where: Roll, drains: Drains) -> Iterator[Reason]:
    """Why engines stop taking requests, end, or go on."""
    sizes = drains.sizes or {}
    before = {item.name: item.replicas for item in observed.sets()}
    for step in drains.steps:
        name, of_set = step.pod.name, step.pod.engine_set
        if step.act == "annotate" and not step.pod.drain:
            yield Reason("DrainStarted", f"Draining {name}: {_why(step, where)}", f"Pod/{name}")
        elif step.act in {"reopen", "forget"}:
            yield Reason("DrainCancelled", f"{name} goes on: {step.words}", f"Pod/{name}")
        elif step.act == "release" and sizes[of_set] <= step.pod.ordinal < before[of_set]:
            reason = "DrainTimedOut" if step.cut else "Drained"
            words = f"Stopped {name}: {step.words}"
            yield Reason(reason, words, f"StatefulSet/{of_set}", alarming=step.cut)


def of_revisions(where: Roll, emptied: Collection[str]) -> Iterator[Reason]:
    """Why revisions are taken away."""
    for item in where.retire:
        if item.name in emptied:
            why = f"{where.wanted} is ready" if where.complete else "it never became ready"
            words = f"Removed {item.component} of revision {item.revision}: {why}"
            yield Reason("RevisionRetired", words, f"StatefulSet/{item.name}")


def _why(step: Step, where: Roll) -> str:
    if step.pod.revision == where.wanted:
        return f"fewer {step.pod.component} engines are asked for"
    if where.complete:
        return f"revision {where.wanted} is ready"
    if where.crowded:
        return f"it makes room for revision {where.wanted}, because {where.crowded}"
    return f"an engine of revision {where.wanted} takes its place"
