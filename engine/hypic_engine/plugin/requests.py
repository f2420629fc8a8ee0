"""What the plugin knows of one request of SGLang's: its segments, what it waits for, what it holds.

Reads what the tokenizer process put into ``custom_params``; allocates nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ..contract import segments as wire
from ..contract.details import Details
from ..core.copies import Copy, Place
from ..core.index import Entry, Pins
from ..core.layout import Layout, Segment, layout, segments
from .settings import Settings

PARAMS = "hypic"


@dataclass(frozen=True, slots=True)
class Asked:
    """The tokenizer process's words about one prompt.

    Attributes:
        ends: token offsets at which segments end.
        digests: request digest of each segment, empty where none is known; the query last.
        recompute: segments to compute in place.
        enabled: whether the request may use segments.
    """

    ends: tuple[int, ...] = ()
    digests: tuple[str, ...] = ()
    recompute: frozenset[int] | Literal["all"] = frozenset()
    enabled: bool = True

    def to_params(self) -> dict[str, Any]:
        """As it travels inside ``custom_params``."""
        recompute = "all" if self.recompute == "all" else sorted(self.recompute)
        return {
            "ends": list(self.ends),
            "digests": list(self.digests),
            "recompute": recompute,
            "enabled": self.enabled,
        }


def asked_of(request: Any) -> Asked:
    """What was asked for ``request``; nothing when the frontend said nothing."""
    params = request.sampling_params.custom_params
    raw = params.get(PARAMS) if isinstance(params, dict) else None
    if raw is None:
        return Asked()
    recompute = raw["recompute"]
    return Asked(
        ends=tuple(raw["ends"]),
        digests=tuple(raw["digests"]),
        recompute="all" if recompute == "all" else frozenset(recompute),
        enabled=raw["enabled"],
    )


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


class Reader:
    """Turns requests into prompts under one server's settings."""

    def __init__(self, settings: Settings, *, model: str) -> None:
        self._settings = settings
        self._model = model
        self._n_updates = 0

    def renew(self) -> None:
        """The weights are others now: no key from before is given again."""
        self._n_updates += 1

    def wanted(self, ids: Sequence[int], segment: Segment, *, salt: str, digest: str) -> Wanted:
        """The segment with its key; ``ids`` are those of the whole prompt."""
        own = ids[segment.start : segment.end]
        key = wire.entry_key(
            own,
            model_revision=f"{self._model}+{self._n_updates}",
            adapter="",
            salt=salt,
            mode=self._settings.mode.value,
            seam=str(self._settings.seam),
        )
        return Wanted(segment, key, wire.ids_bytes(own), digest, salt)

    @staticmethod
    def is_plain(request: Any) -> bool:
        """Whether it has no segments, or asks that they be no concern of ours."""
        asked = asked_of(request)
        return not asked.enabled or not asked.ends

    def prompt(self, request: Any) -> Prompt | None:
        """The request's prompt, or None when it has nothing to take from the cache."""
        asked = asked_of(request)
        if not asked.enabled or not asked.ends or asked.recompute == "all":
            return None
        if request.session is not None:  # its ids begin with those of earlier turns
            return None
        cut = segments(asked.ends, len(request.origin_input_ids))
        recompute = asked.recompute
        plan = layout(
            cut,
            seam=self._settings.seam,
            min_tokens=self._settings.min_tokens,
            in_place=lambda index: index in recompute,
        )
        if not plan.interiors:
            return None
        digests = [*asked.digests, *[""] * len(cut)]
        wanted = tuple(
            self.wanted(
                request.origin_input_ids,
                interior.segment,
                salt=request.extra_key or "",
                digest=digests[interior.segment.index],
            )
            for interior in plan.interiors
        )
        return Prompt(plan, wanted, n_segments=len(cut) - 1)

    def plain(self, request: Any) -> Wanted | None:
        """A prompt without segments as the one segment that it is, or None when not to be kept."""
        asked = asked_of(request)
        n_tokens = len(request.origin_input_ids)
        settings = self._settings
        if not asked.enabled or asked.ends or not settings.store_plain:
            return None
        if request.session is not None:
            return None
        segment = Segment(0, 0, n_tokens)
        digest = asked.digests[0] if asked.digests else ""
        salt = request.extra_key or ""
        return self.wanted(request.origin_input_ids, segment, salt=salt, digest=digest)
