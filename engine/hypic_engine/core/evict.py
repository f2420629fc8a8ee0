"""Who leaves the cache next.

Greedy-dual by size (Cao and Irani, 1997): an entry is worth what computing it again costs, times
how often it was used, per byte it occupies, on top of a floor that rises with each eviction, so
that what was once popular ages. Entries on probation leave before all others. Prefixes of SGLang's
own tree are weighed on the same scale. Frees nothing.
"""

from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum, StrEnum


@dataclass(frozen=True, slots=True, order=True)
class Worth:
    """Sort key of eviction: the smallest leaves first."""

    kept: bool
    settled: bool
    value: float
    tie: int


def worth(
    *, n_tokens: int, n_bytes: int, n_uses: int, floor: float, tie: int, kept: bool = False
) -> Worth:
    """What an entry is worth now.

    Args:
        n_tokens: its length: the cost of computing it again.
        n_bytes: what it occupies in all pools.
        n_uses: requests that used it; 0 means that it is on probation.
        floor: value of the last entry that was evicted.
        kept: whether it leaves after all that are not.
        tie: a counter that grows with every use; the least recently used leaves first.
    """
    value = floor + max(n_uses, 1) * n_tokens / max(n_bytes, 1)
    return Worth(kept=kept, settled=kept or n_uses > 0, value=value, tie=tie)


class Side(Enum):
    """Whose memory is freed."""

    SEGMENT = "segment"
    PREFIX = "prefix"


class Reason(StrEnum):
    """Why that side; a label of the metric on evictions."""

    ON_PROBATION = "on_probation"
    WORTH_LESS = "worth_less"
    NOTHING_ELSE = "nothing_else"


@dataclass(frozen=True, slots=True)
class Choice:
    """Who leaves next, what it is worth, and why it and no other."""

    side: Side
    worth: Worth
    reason: Reason


def choice(segment: Worth | None, prefix: Worth | None) -> Choice | None:
    """Which of the least worthy segment and the least worthy prefix leaves; None without either."""
    if segment is not None and not segment.settled:
        return Choice(Side.SEGMENT, segment, Reason.ON_PROBATION)
    if prefix is None:
        return Choice(Side.SEGMENT, segment, Reason.NOTHING_ELSE) if segment else None
    if segment is None:
        return Choice(Side.PREFIX, prefix, Reason.NOTHING_ELSE)
    if not segment.kept and segment.value <= prefix.value:
        return Choice(Side.SEGMENT, segment, Reason.WORTH_LESS)
    return Choice(Side.PREFIX, prefix, Reason.WORTH_LESS)


class Ages:
    """What the floor was at earlier ticks of a foreign clock, to value what was used then."""

    def __init__(self, *, capacity: int = 4096) -> None:
        self._capacity = capacity
        self._ticks = [float("-inf")]
        self._floors = [0.0]

    def note(self, tick: float, floor: float) -> None:
        """The floor is this now; ticks never fall."""
        if floor == self._floors[-1]:
            return
        self._ticks.append(tick)
        self._floors.append(floor)
        if len(self._ticks) > 2 * self._capacity:
            del self._ticks[: self._capacity]
            del self._floors[: self._capacity]

    def floor_at(self, tick: float) -> float:
        """The floor at that tick, or the oldest one known."""
        return self._floors[max(bisect_right(self._ticks, tick) - 1, 0)]
