"""What engines have for a prompt: how large it is, what each holds of it, what copies would cost.

Knows no policy: what is best is decided in `score` and `choose`.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from .caches.heat import Heat, charge
from .caches.residency import Held
from .prompt import Prompt
from .workers import Fleet, Rates, Worker

# One generated token keeps an engine as busy as this many prompt tokens. Only the order of
# magnitude matters: it makes requests that need no prefill count, so that a burst spreads.
PREFILL_TOKENS_PER_OUTPUT_TOKEN = 40
TOKENS_PER_REQUEST = 64
COMING = Held("", 0)


@dataclass(frozen=True, slots=True)
class Sizes:
    """A prompt in tokens, as well as the fleet knows them.

    Attributes:
        total: of the whole prompt.
        segments: of each segment, by digest.
        output: cost of what it may generate, in tokens of prefill.
        measured_bytes: text of segments whose length an engine has told.
        measured_tokens: the length of those.
    """

    total: float
    segments: Mapping[str, float]
    output: float
    measured_bytes: int = 0
    measured_tokens: int = 0


class Offer(NamedTuple):
    """What one engine has for a prompt; a tuple, for each request makes one for each engine.

    Attributes:
        worker: the engine.
        cold_tokens: of the prompt, what it would have to fill.
        held_tokens: of the prompt, in segments that it holds or is filling for another request.
        n_held: how many those are, counted as often as the prompt names them.
        fetch_bytes: of those, what it has to bring in from host memory.
        n_copied: segments that others hold and it would have to fill as well.
        charged_tokens: what those are charged beyond their filling; below 0 when they are wanted.
        pressure: how much of what it fills costs something else its place; 0 while it has room.
    """

    worker: Worker
    cold_tokens: float = 0.0
    held_tokens: float = 0.0
    n_held: int = 0
    fetch_bytes: int = 0
    n_copied: int = 0
    charged_tokens: float = 0.0
    pressure: float = 0.0


def sizes(prompt: Prompt, told: Collection[Mapping[str, Held]], rates: Rates) -> Sizes:
    """The prompt in tokens: exact where any engine has told, else by the usual ratio.

    Args:
        prompt: the request.
        told: for each engine, those of its segments that it holds.
        rates: the usual ratio.
    """
    known = {digest: one.n_tokens for held in told for digest, one in held.items()}
    segments: dict[str, float] = {}
    total, rest_bytes, measured_bytes, measured_tokens = float(prompt.n_ids), prompt.n_bytes, 0, 0
    for part in prompt.segments:
        exact = known.get(part.digest)
        if exact is not None and part.n_bytes and part.digest not in segments:
            measured_bytes += part.n_bytes
            measured_tokens += exact
        guess = part.n_ids or part.n_bytes / rates.bytes_per_token
        segments[part.digest] = guess if exact is None else exact
        if not part.n_ids:
            total += segments[part.digest]
            rest_bytes -= part.n_bytes
    total += max(rest_bytes, 0) / rates.bytes_per_token
    output = prompt.output_tokens * PREFILL_TOKENS_PER_OUTPUT_TOKEN + TOKENS_PER_REQUEST
    return Sizes(total, segments, output, measured_bytes, measured_tokens)


def survey(prompt: Prompt, workers: Sequence[Worker], fleet: Fleet) -> tuple[Sizes, list[Offer]]:
    """The prompt's size, and what each of ``workers`` has for it.

    Args:
        prompt: the request.
        workers: engines that may be asked.
        fleet: all engines: the others only tell how long segments are.
    """
    times = Counter(part.digest for part in prompt.segments)
    if not times:
        size = sizes(prompt, (), fleet.rates)
        return size, [Offer(worker, size.total) for worker in workers]
    digests = times.keys()
    told = {worker.at.name: worker.residency.digests.among(digests) for worker in fleet.workers}
    size = sizes(prompt, told.values(), fleet.rates)
    held = [_held(worker, told[worker.at.name], digests) for worker in workers]
    charges = _charges(held, size, fleet.heat)
    total, n_copied, charged = size.total, len(charges), sum(charges.values())
    pressure_of = fleet.pressure.of
    offers = [
        Offer(worker, total, 0.0, 0, 0, n_copied, charged, pressure_of(worker.at.name))
        for worker in workers
    ]
    return size, [
        _with_held(offer, mine, size, times, charges) if mine else offer
        for offer, mine in zip(offers, held, strict=True)
    ]


def _with_held(
    offer: Offer,
    mine: Mapping[str, Held],
    size: Sizes,
    times: Mapping[str, int],
    charges: Mapping[str, float],
) -> Offer:
    """The offer of an engine that has some of the segments, which most engines have not."""
    held_tokens, n_held, fetch_bytes, charged_tokens = 0.0, 0, 0, offer.charged_tokens
    for digest, one in mine.items():
        held_tokens += size.segments[digest] * times[digest]
        n_held += times[digest]
        fetch_bytes += one.fetch_bytes
        charged_tokens -= charges[digest]
    return Offer(
        offer.worker,
        max(size.total - held_tokens, 0.0),
        held_tokens,
        n_held,
        fetch_bytes,
        offer.n_copied - len(mine),
        charged_tokens,
        offer.pressure,
    )


def _held(
    worker: Worker, told: Mapping[str, Held], digests: AbstractSet[str]
) -> Mapping[str, Held]:
    """What it holds, and what it is filling for another request: that will be there first."""
    filling = worker.load.filling.among(digests)
    return {**dict.fromkeys(filling, COMING), **told} if filling else told


def _charges(held: Sequence[Mapping[str, Held]], size: Sizes, heat: Heat) -> dict[str, float]:
    """For each segment that somebody has, what one more copy is charged beyond its filling."""
    n_copies = Counter(digest for mine in held for digest in mine)
    return {
        digest: size.segments[digest] * (charge(heat.share(digest), count, len(held)) - 1.0)
        for digest, count in n_copies.items()
    }
