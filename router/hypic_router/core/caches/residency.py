"""Which segments one engine holds, from what it says about its cache.

Reads no socket and no clock: whoever follows the engine feeds lines in, and reads a snapshot when
the result is stale.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from hypic_engine.contract.events import (
    Alias,
    Alive,
    Gap,
    Hello,
    Item,
    Line,
    Page,
    Removed,
    Stored,
)

from .layered import Layered

# About 60 MB of the router's memory. Segments beyond it count as not held until others are gone.
MOST_DIGESTS = 131_072


@dataclass(frozen=True, slots=True)
class Held:
    """One digest's segment.

    Attributes:
        key: the engine's own name of it.
        n_tokens: its length.
        fetch_bytes: what has to be brought in from host memory before it can be used.
    """

    key: str
    n_tokens: int
    fetch_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Residency:
    """What one engine is known to hold.

    Attributes:
        epoch: the engine's epoch that all of this belongs to; empty when nothing is known.
        seq: the last event that is included.
        stale: whether events were missed, so that a snapshot must be read before following on.
        digests: request digest to the segment that it reaches.
        keys: engine key to its digests.
        n_tokens: of all segments.
        evicted_tokens: of segments that it dropped since its snapshot.
    """

    epoch: str = ""
    seq: int = 0
    stale: bool = True
    digests: Layered[str, Held] = field(default_factory=Layered)
    keys: Layered[str, tuple[str, ...]] = field(default_factory=Layered)
    n_tokens: int = 0
    evicted_tokens: int = 0

    @property
    def full(self) -> bool:
        """Whether there is no room to remember more."""
        return len(self.digests) >= MOST_DIGESTS

    def held(self, digest: str) -> int | None:
        """Tokens of the segment with this digest, ``None`` when it is not held."""
        found = self.digests.get(digest)
        return None if found is None else found.n_tokens


NOTHING = Residency()


class _Changes:
    """What a batch of lines changes, seen over the residency it starts from."""

    def __init__(self, start: Residency) -> None:
        self._start = start
        self._digests: dict[str, Held | None] = {}
        self._keys: dict[str, tuple[str, ...] | None] = {}
        self._room = MOST_DIGESTS - len(start.digests)
        self._added_tokens = self._evicted_tokens = 0

    def _digests_of(self, key: str) -> tuple[str, ...]:
        found = self._keys[key] if key in self._keys else self._start.keys.get(key)
        return found or ()

    def _held(self, digest: str) -> Held | None:
        if digest in self._digests:
            return self._digests[digest]
        return self._start.digests.get(digest)

    def add(self, item: Item) -> None:
        fetch_bytes = item.bytes if item.tier == "host" else 0
        known = self._digests_of(item.key)
        kept = dict.fromkeys(known)
        for digest in dict.fromkeys((*kept, *item.digests)):
            if self._held(digest) is None:
                if self._room == 0:
                    continue
                self._room -= 1
            kept[digest] = None
            self._digests[digest] = Held(item.key, item.n_tokens, fetch_bytes)
        if kept:
            self._keys[item.key] = tuple(kept)
            self._added_tokens += 0 if known else item.n_tokens

    def remove(self, key: str) -> None:
        n_tokens = 0
        for digest in self._digests_of(key):
            held = self._held(digest)
            if held is not None and held.key == key:
                self._digests[digest] = None
                self._room += 1
                n_tokens = held.n_tokens
        self._keys[key] = None
        self._evicted_tokens += n_tokens

    def applied(self, seq: int) -> Residency:
        return replace(
            self._start,
            seq=seq,
            digests=self._start.digests.with_changes(self._digests),
            keys=self._start.keys.with_changes(self._keys),
            n_tokens=self._start.n_tokens + self._added_tokens - self._evicted_tokens,
            evicted_tokens=self._start.evicted_tokens + self._evicted_tokens,
        )


def after(residency: Residency, lines: Iterable[Line]) -> Residency:
    """The residency once ``lines`` have been read, in their order.

    A line that was seen already changes nothing. A missing one, or another epoch, makes the result
    stale: what is held is then unknown until a snapshot has been read.
    """
    changes, seq = _Changes(residency), residency.seq
    for line in lines:
        if _missed(residency, seq, line):
            epoch = line.epoch if isinstance(line, Hello) else residency.epoch
            return Residency(epoch=epoch)
        match line:
            case Hello() | Alive() | Gap():
                continue
            case _ if line.seq <= seq:
                continue
            case Stored(seq, item) | Alias(seq, item):
                changes.add(item)
            case Removed(seq, key):
                changes.remove(key)
            case _:
                seq = line.seq
                changes = _Changes(Residency(residency.epoch, seq, stale=False))
    return changes.applied(seq)


def _missed(residency: Residency, seq: int, line: Line) -> bool:
    """Whether ``line`` shows that events after ``seq`` did not reach us."""
    match line:
        case Hello(epoch, last):
            return residency.stale or epoch != residency.epoch or last < seq
        case Gap():
            return True
        case Alive(last):
            return last > seq
        case _:
            return line.seq > seq + 1


def with_page(building: Residency, page: Page) -> Residency:
    """A snapshot being built, with one more page.

    Start from `NOTHING`. Events after the *first* page's number are to be read again, because pages
    are cut while the engine works: seeing an event twice changes nothing, missing one would.
    A page of another epoch than the first gives a stale residency: start again.
    """
    first = building.epoch == ""
    if not first and page.epoch != building.epoch:
        return NOTHING
    changes = _Changes(replace(building, epoch=page.epoch, stale=False))
    for item in page.items:
        changes.add(item)
    return changes.applied(page.seq if first else building.seq)
