"""Decides what ``up`` has to do from what was observed; does none of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from .parts import Part


class Action(StrEnum):
    """What happens to one part."""

    KEEP = "keep"
    START = "start"
    RESTART = "restart"


@dataclass(frozen=True, slots=True)
class Observed:
    """One part as found: the recorded process, its inputs, its answer."""

    recorded: bool  # a record of a start exists
    alive: bool  # and that very process still runs
    current: bool  # it was started with the command and files of today
    healthy: bool  # it answers its health address


NEVER_STARTED = Observed(recorded=False, alive=False, current=False, healthy=False)


@dataclass(frozen=True, slots=True)
class Step:
    """What to do with one part, and why."""

    part: Part
    action: Action
    reason: str


def _decide(observed: Observed) -> tuple[Action, str]:
    match observed:
        case Observed(recorded=False):
            return Action.START, "not started yet"
        case Observed(alive=False):
            return Action.START, "it had died"
        case Observed(current=False):
            return Action.RESTART, "its configuration changed"
        case Observed(healthy=False):
            return Action.RESTART, "it ran but did not answer"
        case _:
            return Action.KEEP, "it runs and answers"


def repair(parts: Iterable[Part], observed: Mapping[str, Observed]) -> tuple[Step, ...]:
    """One step a part, in the order in which they are to be taken."""
    return tuple(
        Step(part, *_decide(observed.get(part.name, NEVER_STARTED)))
        for part in sorted(parts, key=lambda part: part.stage)
    )


def is_cold(observed: Mapping[str, Observed], *, shims: int) -> bool:
    """Whether nothing of the container runtime survived, so that its traces can be cleared."""
    runtime = observed.get("containerd", NEVER_STARTED)
    return not runtime.alive and shims == 0
