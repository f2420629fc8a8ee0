"""A prompt with segments on its way through the scheduler: what it waits for and what it holds.

Parses nothing (`scheduler.reader`) and allocates nothing.
"""

from dataclasses import dataclass, field
from typing import Any

from ..contract.details import Details
from ..core.copies import Copy, Place
from ..core.entry import Entry
from ..core.index import Pins
from ..core.layout import Layout, Segment


@dataclass(frozen=True, slots=True)
class Wanted:
    """One segment as the cache knows it."""

    segment: Segment
    key: str
    ids: bytes
    digest: str
    salt: str = ""


@dataclass(slots=True)
class Capture:
    """Operators that a running prefill leaves in ``operator``, and what becomes of them.

    Attributes:
        wanted: the segment.
        seam: its first tokens, which the operators leave out.
        operator: the slot they go to.
        epoch: of the ledger; when another has begun since, nothing is kept.
    """

    wanted: Wanted
    seam: int
    operator: int
    epoch: str


@dataclass(slots=True, eq=False)
class Prompt:
    """A prompt of several segments on its way through the scheduler.

    Attributes:
        layout: which tokens are computed and which taken from the cache.
        wanted: the segments of its interiors, in order.
        n_segments: segments before the query, cached or not.
        found: keys that were cached when it was first looked at and when it pinned them; None
            before that.
        pins: entries it holds; none until it may proceed with all of them.
        filling: keys it waits for.
        reserved_tokens: what it and its fills will still allocate.
        admitted: whether it runs; its pins then live as long as its key/value slots.
        entries: the entries of its interiors once all are there.
        copies: the moved copies that it reads, in order of the interiors.
        moves: which of them are to be made in its prefill; the others were there.
        waits_since: when it first asked for a fill; None before that and when all are there.
        waited_s: how long it waited for fills.
    """

    layout: Layout
    wanted: tuple[Wanted, ...]
    n_segments: int
    found: frozenset[str] | None = None
    pins: Pins | None = None
    filling: set[str] = field(default_factory=set)
    reserved_tokens: int = 0
    admitted: bool = False
    entries: tuple[Entry, ...] = ()
    copies: tuple[Copy, ...] = ()
    moves: tuple[bool, ...] = ()
    waits_since: float | None = None
    waited_s: float = 0.0

    def waits(self, *, now_s: float) -> None:
        """Segments are missing."""
        if self.waits_since is None:
            self.waits_since = now_s

    def is_complete(self, *, now_s: float) -> None:
        """All segments are there."""
        if self.waits_since is not None:
            self.waited_s += now_s - self.waits_since
            self.waits_since = None

    def place(self, i: int) -> Place:
        """Where the i-th interior's copy stands."""
        return self.wanted[i].key, self.wanted[i].segment.start

    def interior_slots(self) -> list[Any]:
        """Where its entries hold the interiors, once all entries are there."""
        pairs = zip(self.layout.interiors, self.entries, strict=True)
        return [entry.slots[interior.seam :] for interior, entry in pairs]

    def release(self) -> None:
        """Give back pins and reservations; the prompt may be planned anew."""
        if self.pins is not None:
            self.pins.release()
        self.pins, self.entries = None, ()
        self.filling.clear()
        self.reserved_tokens = 0
        self.admitted = False

    @property
    def n_reused(self) -> int:
        """Tokens that were in the cache before and are not computed again."""
        found = self.found or frozenset()
        pairs = zip(self.layout.interiors, self.wanted, strict=True)
        return sum(interior.length for interior, wanted in pairs if wanted.key in found)

    def details(self) -> Details:
        """What a client is told, before it is known how long the prefill takes."""
        pairs = list(zip(self.layout.interiors, self.wanted, strict=True))
        found = self.found or frozenset()
        hit = [interior for interior, wanted in pairs if wanted.key in found]
        return Details(
            found=sum(interior.segment.length for interior in hit),
            reused=self.n_reused,
            recomputed=sum(interior.seam for interior in hit),
            moved=self.layout.n_moved,
            hit=len(hit),
            filled=len(pairs) - len(hit),
            in_place=self.n_segments - len(pairs),
            fill_ms=round(1e3 * self.waited_s, 3),
        )
