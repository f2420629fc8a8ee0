"""The policies: what it would cost to send a prompt to an engine, and why.

A policy sees one engine at a time and never picks; `choose` does. To add one, write its cost and
its words and give it a row in `POLICIES`.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .offer import Offer, Sizes
from .prompt import Prompt
from .workers import Rates

# Requests more than another engine has that are accepted for the sake of a prefix cache.
PREFIX_REQUESTS_AHEAD = 2.0
# An engine's own speed counts where it is further from the usual one than measurements scatter.
NOTABLE_SPEED = 0.25
# From host memory into the accelerator's, over a bus that others use as well.
FETCH_BYTES_PER_S = 10e9


def _speed(offer: Offer, rates: Rates) -> float:
    """Tokens a second that the engine fills."""
    usual, own = rates.fill_tokens_per_s, offer.worker.fill_tokens_per_s
    return own if own and abs(own - usual) > NOTABLE_SPEED * usual else usual


def _ahead_s(offer: Offer, rates: Rates) -> float:
    return offer.worker.load.tokens / _speed(offer, rates)


def _fill_s(_: Prompt, __: Sizes, offer: Offer, rates: Rates) -> float:
    """Seconds to have all segments there, after what the engine has been given already.

    Where memory is full, filling costs as much again: somebody fills later what it throws out.
    """
    fill_tokens = offer.cold_tokens * (1.0 + offer.pressure)
    work_s = (fill_tokens + offer.worker.load.tokens) / _speed(offer, rates)
    return work_s + offer.fetch_bytes / FETCH_BYTES_PER_S


def _load_s(_: Prompt, __: Sizes, offer: Offer, rates: Rates) -> float:
    """Seconds of work that the engine has been given already."""
    return _ahead_s(offer, rates)


def _nothing(_: Prompt, __: Sizes, ___: Offer, ____: Rates) -> float:
    """The same for every engine, so that the rotating start decides."""
    return 0.0


def _prefix(prompt: Prompt, size: Sizes, offer: Offer, _: Rates) -> float:
    """A fixed order of engines for each beginning, given up for one with less work ahead.

    The order is by highest random weight, so that an engine that leaves moves only its prompts.
    """
    name = f"{prompt.prefix}/{offer.worker.at.name}".encode()
    place = int.from_bytes(hashlib.blake2b(name, digest_size=6).digest()) / 2**48
    ahead = offer.worker.load.tokens / (size.total + size.output)
    return max(ahead - PREFIX_REQUESTS_AHEAD, 0.0) + place / 1_000.0


def charge_s(offer: Offer, rates: Rates) -> float:
    """Seconds charged beyond the cost, for copies of what other engines hold."""
    return offer.charged_tokens / _speed(offer, rates)


def _work(offer: Offer, rates: Rates) -> str:
    return f"{offer.worker.load.requests} requests ahead, {_ahead_s(offer, rates):.2f} s"


def _holdings(prompt: Prompt, size: Sizes, offer: Offer, rates: Rates) -> str:
    return (
        f"holds {offer.n_held} of {len(prompt.segments)} segments, {offer.held_tokens:.0f} of "
        f"about {size.total:.0f} tokens; {_work(offer, rates)}"
    )


@dataclass(frozen=True, slots=True)
class Policy:
    """One way to prefer engines.

    Attributes:
        cost: of one engine for a prompt; the lowest wins.
        words: why that engine, for people.
        label: why, for metrics; empty when it depends on what the engine holds.
        plain: what decides for prompts without segments, where it is not this one.
    """

    cost: Callable[[Prompt, Sizes, Offer, Rates], float]
    words: Callable[[Prompt, Sizes, Offer, Rates], str]
    label: str
    plain: "Policy | None" = None


LEAST_LOAD = Policy(
    _load_s, lambda _, __, offer, rates: f"least work: {_work(offer, rates)}", "least_load"
)
PREFIX_HASH = Policy(
    _prefix,
    lambda _, __, offer, rates: f"by the prompt's beginning; {_work(offer, rates)}",
    "prefix",
)
POLICIES: Mapping[str, Policy] = {
    "segment": Policy(_fill_s, _holdings, "", plain=PREFIX_HASH),
    "least_load": LEAST_LOAD,
    "round_robin": Policy(_nothing, lambda _, __, ___, ____: "next in turn", "round_robin"),
    "prefix_hash": PREFIX_HASH,
}
