"""How many engines each set has on the way from one revision to another.

Does not drain and does not write; `drain` says when an engine may go, `plan` what to write.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Literal

from .observed import EngineSet, Observed

Strategy = Literal["Auto", "Surge", "Recreate"]
SURGE_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Asked:
    """What the spec asks for.

    Attributes:
        revision: what the engines are to be.
        sizes: engines of each role.
        strategy: whether new engines come before old ones go.
        max_skew: engines that one role may be ahead of the other's share.
    """

    revision: str
    sizes: Mapping[str, int]
    strategy: Strategy = "Auto"
    max_skew: int = 1


@dataclass(frozen=True, slots=True)
class Roll:
    """Where the engines are on the way from one revision to another.

    Attributes:
        wanted: the revision that the spec asks for.
        serving: the revision that requests are served from; empty before the first is ready.
        complete: whether all engines of the wanted revision are ready.
        keep: sets of other revisions that stay for now.
        retire: sets of other revisions that go.
        goals: engines that each role of the wanted revision is to have now.
        others: engines that each set of another revision is to have now, by its name.
        crowded: why old engines make room before new ones come, in the scheduler's words.
    """

    wanted: str
    serving: str
    complete: bool
    keep: tuple[EngineSet, ...] = ()
    retire: tuple[EngineSet, ...] = ()
    goals: Mapping[str, int] | None = None
    others: Mapping[str, int] | None = None
    crowded: str = ""


def roll(asked: Asked, observed: Observed, *, served_last: str) -> Roll:
    """Which revision serves, and how many engines of which each role has now.

    A set of another revision stays while the wanted one is not complete, if it is of the one that
    served last or has ready engines; a revision that never came up holds nobody back.

    Args:
        asked: what the spec asks for.
        observed: what runs.
        served_last: the revision that the status says serves.
    """
    sets = observed.sets()
    new = {item.component: item for item in sets if item.revision == asked.revision}
    others = tuple(item for item in sets if item.revision != asked.revision)
    if _complete(asked, new):
        gone = {item.name: 0 for item in others}
        wanted = asked.revision
        sizes = dict(asked.sizes)
        return Roll(wanted, wanted, complete=True, retire=others, goals=sizes, others=gone)
    alive = {item.revision for item in others if item.ready} | {served_last}
    keep = tuple(item for item in others if item.revision in alive)
    if served_last not in {asked.revision, *(item.revision for item in keep)}:
        served_last = next((item.revision for item in keep), "")
    steps = {role: _step(asked, role, new, keep, observed) for role in asked.sizes}
    goals = {role: step.new for role, step in steps.items()}
    left = _shared_out(keep, {role: step.old for role, step in steps.items()})
    retire = tuple(item for item in others if item not in keep)
    left |= {item.name: 0 for item in retire}
    crowded = next((step.crowded for step in steps.values() if step.crowded), "")
    return Roll(
        asked.revision,
        served_last,
        complete=False,
        keep=keep,
        retire=retire,
        goals=goals,
        others=left,
        crowded=crowded,
    )


def still(observed: Observed, wanted: str, served_last: str) -> Roll:
    """Everything stays as it is, because the spec cannot be carried out."""
    sets = observed.sets()
    others = tuple(item for item in sets if item.revision != wanted)
    serving = served_last if any(item.revision == served_last for item in sets) else ""
    goals = {item.component: item.replicas for item in sets if item.revision == wanted}
    as_they_are = {item.name: item.replicas for item in others}
    return Roll(wanted, serving, complete=False, keep=others, goals=goals, others=as_they_are)


@dataclass(frozen=True, slots=True)
class _Step:
    """Engines of one role: of the wanted revision, and of all others together."""

    new: int
    old: int
    crowded: str = ""


def _complete(asked: Asked, new: Mapping[str, EngineSet]) -> bool:
    sizes = asked.sizes.items()
    return all(role in new and new[role].ready >= size for role, size in sizes)


def _step(
    asked: Asked,
    role: str,
    new: Mapping[str, EngineSet],
    keep: tuple[EngineSet, ...],
    observed: Observed,
) -> _Step:
    size, mine = asked.sizes[role], new.get(role)
    old = [item for item in keep if item.component == role]
    if not any(item.replicas or item.present for item in old):
        return _Step(size, 0)
    serves = min(mine.ready, size) if mine and _paired(asked, new) else 0
    crowded = observed.crowded(role, asked.revision) if asked.strategy == "Auto" else ""
    if asked.strategy == "Recreate" or crowded:
        left = max(0, size - serves - 1)
    else:
        # Both roles of a revision are needed to serve: its last engine stays to the end.
        left = max(size - serves, 1 if len(asked.sizes) > 1 else 0)
    grown = mine.replicas if mine else 0
    if asked.strategy == "Recreate":
        room = size - sum(max(item.present, item.replicas) for item in old)
    else:
        room = (mine.ready if mine else 0) + max(1, ceil(size * SURGE_SHARE))
    ahead = _allowed(asked, role, new)
    return _Step(max(min(room, size, ahead), min(grown, size)), left, crowded)


def _paired(asked: Asked, new: Mapping[str, EngineSet]) -> bool:
    """Whether the wanted revision can answer: every role of it has a ready engine."""
    return all(role in new and new[role].ready for role, size in asked.sizes.items() if size)


def _allowed(asked: Asked, role: str, new: Mapping[str, EngineSet]) -> int:
    """Engines that this role may have by how far the other one is."""
    shares = [
        new[name].ready / size if name in new else 0.0
        for name, size in asked.sizes.items()
        if name != role and size
    ]
    return asked.max_skew + int(min(shares, default=1.0) * asked.sizes[role])


def _shared_out(keep: tuple[EngineSet, ...], left: Mapping[str, int]) -> dict[str, int]:
    """Engines of each old set: none grows, and those with most ready engines keep theirs."""
    found, rest = {}, dict(left)
    for item in sorted(keep, key=lambda item: (-item.ready, item.name)):
        # A role that is not asked for any more goes when the others are complete.
        may_stay = rest.get(item.component, item.replicas)
        found[item.name] = min(item.replicas, may_stay)
        if item.component in rest:
            rest[item.component] -= found[item.name]
    return found
