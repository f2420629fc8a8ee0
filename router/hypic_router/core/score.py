"""The policies: what it would cost to send a prompt to an engine, and why.

A policy sees one engine at a time and never picks; `choose` does. To add one, write a function
and give it a row in `POLICIES`.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .prompt import Prompt
from .workers import Rates, Worker

# One generated token keeps an engine as busy as this many prompt tokens. Only the order of
# magnitude matters: it makes requests that need no prefill count, so that a burst spreads.
PREFILL_TOKENS_PER_OUTPUT_TOKEN = 40
TOKENS_PER_REQUEST = 64


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
class Score:
    """What one engine would cost; the lowest wins.

    Attributes:
        seconds: until it would have done this prompt's prefill, what is ahead of it included.
        cold_tokens: those it would have to fill.
        held_tokens: those it holds.
        n_held: segments that it holds or is filling.
        label: a bounded word for metrics.
        reason: words for people.
    """

    seconds: float
    cold_tokens: float
    held_tokens: float
    n_held: int
    label: str
    reason: str = ""


def sizes(prompt: Prompt, workers: Sequence[Worker], rates: Rates) -> Sizes:
    """The prompt in tokens: exact where any engine holds the segment, else by the usual ratio."""
    segments: dict[str, float] = {}
    total, rest_bytes, measured_bytes, measured_tokens = float(prompt.n_ids), prompt.n_bytes, 0, 0
    for part in prompt.segments:
        if part.digest not in segments:
            told = _told(part.digest, workers)
            if told is not None and part.n_bytes:
                measured_bytes, measured_tokens = (
                    measured_bytes + part.n_bytes,
                    measured_tokens + told,
                )
            guess = part.n_ids or part.n_bytes / rates.bytes_per_token
            segments[part.digest] = guess if told is None else told
        if not part.n_ids:
            total += segments[part.digest]
            rest_bytes -= part.n_bytes
    total += max(rest_bytes, 0) / rates.bytes_per_token
    output = prompt.output_tokens * PREFILL_TOKENS_PER_OUTPUT_TOKEN + TOKENS_PER_REQUEST
    return Sizes(total, segments, output, measured_bytes, measured_tokens)


def _told(digest: str, workers: Sequence[Worker]) -> int | None:
    for worker in workers:
        if (n_tokens := worker.residency.held(digest)) is not None:
            return n_tokens
    return None


def segment(prompt: Prompt, size: Sizes, worker: Worker, rates: Rates) -> Score:
    """Seconds to fill what the engine lacks, after what it has been given already."""
    held = 0.0
    n_held = 0
    residency, filling = worker.residency, worker.load.filling
    for part in prompt.segments:
        if residency.held(part.digest) is not None or filling.get(part.digest):
            held += size.segments[part.digest]
            n_held += 1
    cold = max(size.total - held, 0.0)
    seconds = (cold + worker.load.tokens) / rates.fill_tokens_per_s
    ahead_s = worker.load.tokens / rates.fill_tokens_per_s
    reason = (
        f"holds {n_held} of {len(prompt.segments)} segments, {held:.0f} of about "
        f"{size.total:.0f} tokens; {worker.load.requests} requests ahead, {ahead_s:.2f} s"
    )
    return Score(seconds, cold, held, n_held, "held" if n_held else "least_load", reason)


def least_load(prompt: Prompt, size: Sizes, worker: Worker, rates: Rates) -> Score:
    """Seconds of work that the engine has been given already."""
    ahead_s = worker.load.tokens / rates.fill_tokens_per_s
    known = segment(prompt, size, worker, rates)
    reason = f"least work ahead: {worker.load.requests} requests, {ahead_s:.2f} s"
    return Score(ahead_s, known.cold_tokens, known.held_tokens, known.n_held, "least_load", reason)


def round_robin(prompt: Prompt, size: Sizes, worker: Worker, rates: Rates) -> Score:
    """The same for every engine, so that the rotating start decides."""
    known = segment(prompt, size, worker, rates)
    reason = "next in turn"
    return Score(0.0, known.cold_tokens, known.held_tokens, known.n_held, "round_robin", reason)


def prefix_hash(prompt: Prompt, size: Sizes, worker: Worker, rates: Rates) -> Score:
    """A fixed order of engines for each prompt beginning, given up for one with less work ahead.

    The order is by highest random weight, so that an engine that leaves moves only its own prompts.
    """
    ahead = worker.load.tokens / (size.total + size.output)
    weight = hashlib.blake2b(f"{prompt.prefix}/{worker.at.name}".encode(), digest_size=6).digest()
    place = int.from_bytes(weight) / 2**48
    known = segment(prompt, size, worker, rates)
    reason = f"by the beginning of the prompt; {worker.load.requests} requests ahead"
    # Two requests more than another engine has are accepted for the sake of its prefix cache.
    return Score(
        max(ahead - 2.0, 0.0) + place / 1_000.0,
        known.cold_tokens,
        known.held_tokens,
        known.n_held,
        "prefix",
        reason,
    )


Policy = Callable[[Prompt, Sizes, Worker, Rates], Score]

POLICIES: Mapping[str, Policy] = {
    "segment": segment,
    "least_load": least_load,
    "round_robin": round_robin,
    "prefix_hash": prefix_hash,
}
