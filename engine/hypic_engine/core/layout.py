"""Which tokens of a prompt are taken from the cache and which are computed.

Decides from lengths and settings alone; knows neither slots nor tensors.

A prompt is an alternation of runs (computed in place with their true prefix) and interiors (taken
from the cache): ``run 0, interior 0, run 1, ..., interior n-1, run n``. A run may be empty; the
last one never is, since the query is always computed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

# The width-4 convolution needs the last three inputs of what lies before a run.
CONVOLUTION_TAIL_TOKENS = 3


@dataclass(frozen=True, slots=True)
class Seam:
    """How many tokens at a segment's start are recomputed in place.

    Attributes:
        width: 0 none, a fraction of the segment when at most 1, else tokens.
    """

    width: float

    def n_tokens(self, length: int) -> int:
        """Seam tokens of a segment of ``length`` tokens: never more than half of it."""
        wanted = self.width if self.width > 1 else round(self.width * length)
        return min(int(wanted), length // 2)

    def __str__(self) -> str:
        return f"{self.width:g}"


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of prompt tokens that may be reused anywhere: tokens [start, end)."""

    index: int
    start: int
    end: int

    @property
    def length(self) -> int:
        """Its number of tokens."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Interior:
    """What the cache supplies of one segment: prompt tokens [start, end)."""

    segment: Segment
    start: int

    @property
    def end(self) -> int:
        """The segment's end."""
        return self.segment.end

    @property
    def seam(self) -> int:
        """Its seam in tokens."""
        return self.start - self.segment.start

    @property
    def length(self) -> int:
        """Its number of tokens."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Layout:
    """One prompt, cut into runs and interiors; ``len(runs) == len(interiors) + 1``."""

    runs: tuple[tuple[int, int], ...]
    interiors: tuple[Interior, ...]

    @property
    def n_moved(self) -> int:
        """Tokens taken from the cache."""
        return sum(interior.length for interior in self.interiors)

    @property
    def n_computed(self) -> int:
        """Tokens computed in place."""
        return sum(end - start for start, end in self.runs)

    def until(self, n_tokens: int) -> "Layout":
        """The same prompt followed by what was generated before a retraction, all computed."""
        *runs, (start, _) = self.runs
        return Layout((*runs, (start, n_tokens)), self.interiors)


def segments(ends: Sequence[int], n_tokens: int) -> tuple[Segment, ...]:
    """The segments of a prompt, the query last.

    Args:
        ends: increasing token offsets at which segments end; may or may not name the prompt's end.
        n_tokens: length of the prompt.
    """
    inner = [end for end in ends if 0 < end < n_tokens]
    bounds = [0, *inner, n_tokens]
    return tuple(Segment(i, start, end) for i, (start, end) in enumerate(pairwise(bounds)))


def cacheable(length: int, *, seam: Seam, min_tokens: int) -> bool:
    """Whether a segment of this length can be an entry of the cache."""
    interior = length - seam.n_tokens(length)
    return length >= min_tokens and interior >= CONVOLUTION_TAIL_TOKENS


def layout(
    prompt: Sequence[Segment],
    *,
    seam: Seam,
    min_tokens: int,
    in_place: Callable[[int], bool] = lambda _: False,
) -> Layout:
    """How to build the state of a prompt.

    Args:
        prompt: its segments; the last is the query and is always computed.
        seam: width of the seams.
        min_tokens: shorter segments are computed in place.
        in_place: whether the segment with this index is to be computed in place.
    """
    runs: list[tuple[int, int]] = []
    interiors: list[Interior] = []
    run_start = 0
    for segment in prompt[:-1]:
        if in_place(segment.index):
            continue
        if not cacheable(segment.length, seam=seam, min_tokens=min_tokens):
            continue
        start = segment.start + seam.n_tokens(segment.length)
        runs.append((run_start, start))
        interiors.append(Interior(segment, start))
        run_start = segment.end
    runs.append((run_start, prompt[-1].end))
    return Layout(tuple(runs), tuple(interiors))
