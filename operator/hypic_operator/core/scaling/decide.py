"""From the load of now and of the last minutes to a number of engines.

More engines come at once, fewer only when fewer have been enough for a while. No data is not zero:
what is not known changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Self

from ..api import Scaling
from .load import Load, Recommendation


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a role's scaling says.

    Attributes:
        fewest: least number of engines; 0 where they may sleep.
        most: largest number.
        requests: an engine's share of requests.
        computed_per_s: an engine's share of uncached prompt tokens a second; None for no limit.
        calm_s: how long fewer must have been enough before there are fewer.
        idle_s: how long there must have been nothing to do before the last engines sleep.
    """

    fewest: int
    most: int
    requests: int
    computed_per_s: int | None
    calm_s: float
    idle_s: float

    @classmethod
    def of(cls, scaling: Scaling) -> Self:
        """From the resource."""
        return cls(
            scaling.min,
            scaling.max,
            requests=scaling.requests,
            computed_per_s=scaling.uncached_tokens_per_second,
            calm_s=scaling.calm_seconds,
            idle_s=scaling.idle_seconds,
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """How many engines there are to be, and why.

    Attributes:
        engines: the number.
        reason: CamelCase word.
        message: for people.
        known: whether it rests on data.
    """

    engines: int
    reason: str
    message: str
    known: bool = True


def wanted(bounds: Bounds, load: Load) -> int:
    """Engines that this load needs, within the bounds; none for none where they may sleep."""
    needed = ceil(load.requests / bounds.requests)
    if bounds.computed_per_s and load.computed_per_s:
        needed = max(needed, ceil(load.computed_per_s / bounds.computed_per_s))
    if load.held:
        needed = max(needed, 1)
    return min(max(needed, bounds.fewest), bounds.most)


def remembered(
    before: Sequence[Recommendation], bounds: Bounds, load: Load | None, *, now_s: float
) -> tuple[Recommendation, ...]:
    """The recommendations that still matter, with that of now.

    Without data everything is forgotten, because nobody knows what was needed meanwhile.
    """
    if load is None or not load.whole:
        return ()
    engines = wanted(bounds, load)
    busy = load.requests > 0 or bool(load.computed_per_s)
    # One that is older than the longest window stays, to tell that the window is full.
    oldest_s = now_s - max(bounds.calm_s, bounds.idle_s)
    older = [item for item in before if item.at_s <= oldest_s][-1:]
    newer = [item for item in before if item.at_s > oldest_s]
    return (*older, *newer, Recommendation(now_s, engines, busy))


def decide(
    bounds: Bounds,
    load: Load | None,
    memory: Sequence[Recommendation],
    *,
    current: int,
    ready: int,
    rolling: bool,
    now_s: float,
) -> Decision:
    """How many engines a role is to have.

    Args:
        bounds: what its scaling says.
        load: what there is to do; None while nobody tells.
        memory: recommendations so far, that of now included.
        current: engines asked for now.
        ready: engines that take requests.
        rolling: whether another revision is on its way.
        now_s: the time, on the memory's clock.
    """
    if load is None:
        return Decision(current, "NoMetrics", "no router says what there is to do", known=False)
    needed = wanted(bounds, load)
    why = f"{_requests(load)}, {bounds.requests} an engine"
    if bounds.computed_per_s and load.computed_per_s:
        why += f"; {load.computed_per_s:.0f} uncached tokens/s, {bounds.computed_per_s} an engine"
    if needed > current:
        reason = "Woken" if current == 0 else "ScaledUp"
        return Decision(needed, reason, why)
    if needed == current:
        return Decision(current, "Enough", why)
    if not load.whole:
        words = "a router or an engine does not say what it has to do, so none is taken away"
        return Decision(current, "PartOfMetrics", words, known=False)
    if rolling:
        return Decision(current, "Rolling", "none is taken away while a revision is rolled out")
    return _fewer(bounds, memory, current, ready, why, now_s)


def _fewer(
    bounds: Bounds,
    memory: Sequence[Recommendation],
    current: int,
    ready: int,
    why: str,
    now_s: float,
) -> Decision:
    calm = max(_most(memory, now_s - bounds.calm_s, current), bounds.fewest)
    if calm >= current:
        words = f"fewer would do; {why}; waits until they have for {bounds.calm_s:.0f} s"
        return Decision(current, "WaitsForCalm", words)
    if calm > 0:
        return Decision(calm, "ScaledDown", why)
    # Engines that have not been ready since they were woken have had no chance to be of use.
    if not ready:
        return Decision(max(1, current), "Waking", "the engines are still waking")
    if not _idle(memory, now_s - bounds.idle_s):
        words = f"sleeps when there has been nothing to do for {bounds.idle_s:.0f} s"
        return Decision(1, "ScaledDown" if current > 1 else "WaitsForIdle", words)
    return Decision(0, "FellAsleep", f"nothing to do for {bounds.idle_s:.0f} s")


def _most(memory: Sequence[Recommendation], since_s: float, unknown: int) -> int:
    """The largest number that was right since then; `unknown` if memory does not go back to it."""
    if not memory or memory[0].at_s > since_s:
        return unknown
    return max(item.engines for item in memory if item.at_s >= since_s)


def _idle(memory: Sequence[Recommendation], since_s: float) -> bool:
    known = bool(memory) and memory[0].at_s <= since_s
    return known and not any(item.busy for item in memory if item.at_s >= since_s)


def _requests(load: Load) -> str:
    words = "1 request" if load.requests == 1 else f"{load.requests} requests"
    return f"{words}, {load.held} of them held" if load.held else words
