"""The policies: what it would cost to send a prompt to an engine, and why.

A policy sees one engine at a time and never picks; `choose` does. To add one, write its cost and
its words and give it a row in `POLICIES`.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from .prompt import Prompt
from .workers import Rates, Worker

# One generated token keeps an engine as busy as this many prompt tokens. Only the order of
# magnitude matters: it makes requests that need no prefill count, so that a burst spreads.
PREFILL_TOKENS_PER_OUTPUT_TOKEN = 40
TOKENS_PER_REQUEST = 64
# Requests more than another engine has that are accepted for the sake of a prefix cache.
PREFIX_REQUESTS_AHEAD = 2.0


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


@dataclass(frozen=True, slots=True)
class Offer:
    """What one engine has for a prompt.

    Attributes:
        worker: the engine.
        held_tokens: of the prompt, in segments that it holds or is filling for another request.
        n_held: how many those are, counted as often as the prompt names them.
    """

    worker: Worker
    held_tokens: float
    n_held: int

    def cold_tokens(self, size: Sizes) -> float:
        """What it would have to fill."""
        return max(size.total - self.held_tokens, 0.0)


def sizes(prompt: Prompt, told: Collection[Mapping[str, int]], rates: Rates) -> Sizes:
    """The prompt in tokens: exact where any engine has told, else by the usual ratio.

    Args:
        prompt: the request.
        told: for each engine, the lengths of those of its segments that it holds.
        rates: the usual ratio.
    """
    known = {digest: n_tokens for held in told for digest, n_tokens in held.items()}
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


def survey(
    prompt: Prompt, workers: Sequence[Worker], others: Sequence[Worker], rates: Rates
) -> tuple[Sizes, list[Offer]]:
    """The prompt's size, and what each of ``workers`` has for it.

    Args:
        prompt: the request.
        workers: engines that may be asked.
        others: further engines, which only tell how long segments are.
        rates: for what nobody has told.
    """
    digests = {part.digest for part in prompt.segments}
    told = [worker.residency.lengths(digests) for worker in workers] if digests else []
    size = sizes(prompt, [*told, *(one.residency.lengths(digests) for one in others)], rates)
    if not digests:
        return size, [Offer(worker, 0.0, 0) for worker in workers]
    return size, [
        _offer(prompt, size, worker, held) for worker, held in zip(workers, told, strict=True)
    ]


def _offer(prompt: Prompt, size: Sizes, worker: Worker, held: Mapping[str, int]) -> Offer:
    filling = worker.load.filling
    if not held and not worker.load.requests:
        return Offer(worker, 0.0, 0)
    found = [
        size.segments[part.digest]
        for part in prompt.segments
        if part.digest in held or filling.get(part.digest)
    ]
    return Offer(worker, sum(found), len(found))


def _ahead_s(offer: Offer, rates: Rates) -> float:
    return offer.worker.load.tokens / rates.fill_tokens_per_s


def _fill_s(_: Prompt, size: Sizes, offer: Offer, rates: Rates) -> float:
    """Seconds to fill what the engine lacks, after what it has been given already."""
    return offer.cold_tokens(size) / rates.fill_tokens_per_s + _ahead_s(offer, rates)


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
    """

    cost: Callable[[Prompt, Sizes, Offer, Rates], float]
    words: Callable[[Prompt, Sizes, Offer, Rates], str]
    label: str


POLICIES: Mapping[str, Policy] = {
    "segment": Policy(_fill_s, _holdings, ""),
    "least_load": Policy(
        _load_s, lambda _, __, offer, rates: f"least work: {_work(offer, rates)}", "least_load"
    ),
    "round_robin": Policy(_nothing, lambda _, __, ___, ____: "next in turn", "round_robin"),
    "prefix_hash": Policy(
        _prefix,
        lambda _, __, offer, rates: f"by the prompt's beginning; {_work(offer, rates)}",
        "prefix",
    ),
}
