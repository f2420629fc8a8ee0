"""Which engine gets a prompt: filter, score, break ties. Says why.

Does not count the work it gives out; `fleet` does, in the same step of the event loop.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import add

from . import pairs
from .offer import Offer, Sizes, survey
from .prompt import Prompt
from .score import LEAST_LOAD, Policy, charge_s
from .workers import ASKABLE, Fleet, Role, State, Worker

# Costs closer than this are equal: the rotating start decides, so that a burst spreads.
TIE_S = 1e-6
# Others hold more: it gets copies, because they have more to do.
COPIED = "copied"
# It would not have been cheapest, had another not needed a copy too many.
BOUNDED = "bounded"
WORDS = {
    COPIED: "; gets copies of {n} segments whose holders have more to do",
    BOUNDED: "; has more to do than another, which would need copies that are not worth it",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """One engine for one prompt.

    Attributes:
        offer: the engine as it was when chosen, and what it has for the prompt.
        size: the prompt in tokens.
        label: a bounded word for metrics.
        reason: words for people.
        stream: whether its answer is streamed.
    """

    offer: Offer
    size: Sizes
    label: str
    reason: str
    stream: bool

    @property
    def worker(self) -> Worker:
        """The engine, as it was when chosen."""
        return self.offer.worker

    @property
    def cold_tokens(self) -> float:
        """What the engine has to fill for this prompt."""
        return self.offer.cold_tokens

    @property
    def work_tokens(self) -> float:
        """What this request adds to the engine's work, in tokens of prefill."""
        return self.cold_tokens + self.size.output


def candidates(fleet: Fleet, tried: Collection[str], now_s: float) -> list[Worker]:
    """The engines that may be asked; of a pair, the one that takes the prompt.

    Where no ready engine is left, those that are merely late are asked, and where every breaker is
    open they count as closed: trying one beats refusing everybody. An engine that has as much to do
    as it may is asked only where all have.
    """
    for state in ASKABLE:
        able = [w for w in pairs.startable(fleet, tried) if w.state is state]
        if able:
            able = [worker for worker in able if worker.breaker.admits(now_s)] or able
            return [w for w in able if w.load.requests < fleet.most_requests] or able
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
        tried: names of engines and pairs that failed this request already.
    """
    workers = candidates(fleet, tried, now_s)
    if not workers:
        return None
    start = turn % len(workers)
    workers = workers[start:] + workers[:start]
    if not prompt.segments:
        policy = (policy.plain if prompt.prefix else LEAST_LOAD) or policy
    size, offers = survey(prompt, workers, fleet)
    costs = [policy.cost(prompt, size, offer, fleet.rates) for offer in offers]
    label, reason = policy.label, ""
    if label:
        chosen = _cheapest(offers, costs)
    else:
        charges = [charge_s(offer, fleet.rates) for offer in offers]
        charged = list(map(add, costs, charges))
        chosen = _cheapest(offers, charged)
        label = _label(chosen, offers, _cheapest(offers, costs))
        reason = WORDS.get(label, "").format(n=chosen.n_copied)
    reason = policy.words(prompt, size, chosen, fleet.rates) + reason
    return Choice(chosen, size, label, reason, prompt.stream)


def _cheapest(offers: Sequence[Offer], costs: Sequence[float]) -> Offer:
    lowest = min(costs) + TIE_S
    return next(offer for offer, cost in zip(offers, costs, strict=True) if cost <= lowest)


def _label(chosen: Offer, offers: Sequence[Offer], uncharged: Offer) -> str:
    """Why the engine was chosen, given the one that is cheapest without charges for copies."""
    if chosen.held_tokens < max(offer.held_tokens for offer in offers):
        return COPIED
    if uncharged.held_tokens < chosen.held_tokens:
        return BOUNDED
    return "held" if chosen.n_held else "least_load"


def partner(
    choice: Choice, fleet: Fleet, *, turn: int, now_s: float, tried: Collection[str] = ()
) -> Choice | None:
    """The decode engine with the least work for a prefill engine; ``None`` for other engines."""
    if choice.worker.at.role is not Role.PREFILL:
        return None
    able = pairs.partners(fleet, choice.worker, tried)
    able = [w for w in able if w.state is State.READY] or able
    able = [w for w in able if w.breaker.admits(now_s)] or able
    start = turn % len(able)
    worker = min(able[start:] + able[:start], key=lambda one: one.load.tokens)
    size = Sizes(0.0, {}, choice.size.output)
    words = f"{worker.load.requests} requests ahead"
    return Choice(Offer(worker), size, choice.label, words, choice.stream)


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
    shown = "; ".join((pairs.lacking(fleet) + failed + missing)[:8])
    return f"none of {len(fleet.workers)} engines can take this request ({shown})"
