"""Which engine gets a prompt: filter, score, break ties. Says why.

Does not count the work it gives out; `fleet` does, in the same step of the event loop.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from .prompt import Prompt
from .score import Policy, Score, Sizes, sizes
from .workers import Fleet, State, Worker

# Costs closer than this are equal: the rotating start decides, so that a burst spreads.
TIE_S = 1e-6


@dataclass(frozen=True, slots=True)
class Choice:
    """One engine for one prompt.

    Attributes:
        worker: the engine, as it was when chosen.
        score: what it is expected to cost.
        size: the prompt in tokens.
        label: a bounded word for metrics.
        reason: words for people.
        stream: whether its answer is streamed.
    """

    worker: Worker
    score: Score
    size: Sizes
    label: str
    reason: str
    stream: bool

    @property
    def work_tokens(self) -> float:
        """What this request adds to the engine's work, in tokens of prefill."""
        return self.score.cold_tokens + self.size.output


def candidates(fleet: Fleet, tried: Collection[str], now_s: float) -> list[Worker]:
    """The engines that may be asked.

    Where no ready engine is left, those that are merely late are asked, and where every breaker is
    open they count as closed: trying one beats refusing everybody.
    """
    for state in (State.READY, State.LATE):
        able = [w for w in fleet.workers if w.state is state and w.at.name not in tried]
        if able:
            return [worker for worker in able if worker.breaker.admits(now_s)] or able
    return []


def choose(
    prompt: Prompt,
    fleet: Fleet,
    policy: Policy,
    *,
    turn: int,
    now_s: float,
    tried: Collection[str] = (),
) -> Choice | None:
    """The engine with the lowest cost, ``None`` when there is none to ask.

    Args:
        prompt: the request.
        fleet: the engines.
        policy: the cost of one of them.
        turn: where to begin among equals; the caller counts it up.
        now_s: the moment, for breakers.
        tried: names of engines that failed this request already.
    """
    workers = candidates(fleet, tried, now_s)
    if not workers:
        return None
    size = sizes(prompt, fleet.workers, fleet.rates)
    start = turn % len(workers)
    workers = workers[start:] + workers[:start]
    scores = [policy(prompt, size, worker, fleet.rates) for worker in workers]
    lowest = min(score.seconds for score in scores)
    at = next(i for i, score in enumerate(scores) if score.seconds <= lowest + TIE_S)
    chosen = scores[at]
    label = _label(chosen, max(score.held_tokens for score in scores))
    if label != chosen.label:
        chosen = replace(chosen, reason=f"{chosen.reason}; another holds more but has more to do")
    return Choice(workers[at], chosen, size, label, chosen.reason, prompt.stream)


def _label(chosen: Score, most_held: float) -> str:
    """A choice by cost that passes by the engine with the most tokens is a spread."""
    by_cost = chosen.label in ("held", "least_load")
    if chosen.label == "held" and chosen.held_tokens < most_held:
        return "spread"
    return "spread" if by_cost and chosen.n_held == 0 and most_held > 0 else chosen.label


def nobody(fleet: Fleet, tried: Collection[str]) -> str:
    """Why there is no engine to ask, naming what is missing."""
    if not fleet.workers:
        return "no engine is known: none is discovered yet"
    missing = [
        f"{w.at.name} is {w.state.value}: {w.reason}"
        for w in fleet.workers
        if w.state is not State.READY
    ]
    failed = [f"{name} failed this request" for name in tried]
    shown = "; ".join((failed + missing)[:8])
    return f"none of {len(fleet.workers)} engines can take this request ({shown})"
