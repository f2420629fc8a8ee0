"""Which segments are cached, who uses them, and what may be freed.

Plain Python, one writer, no tensors: slots are opaque values that belong to the entry from insert
to remove. All sizes are O(1), eviction is O(log n), nothing is kept per token.
"""

import heapq
from collections.abc import Iterable, Iterator
from typing import Any

from . import evict
from .entry import Entry


class Pins:
    """A counted handle on entries, released exactly once."""

    __slots__ = ("_entries", "_index", "_released")

    def __init__(self, index: "Index") -> None:
        self._index = index
        self._entries: dict[str, Entry] = {}
        self._released = False

    def add(self, entry: Entry) -> None:
        """Pin one more entry; a second time changes nothing."""
        if self._released:
            raise RuntimeError("a released handle cannot pin")
        if entry.key not in self._entries:
            self._entries[entry.key] = entry
            self._index.pin(entry)

    def release(self) -> None:
        """Unpin all; a second call changes nothing."""
        if self._released:
            return
        self._released = True
        for entry in self._entries.values():
            self._index.unpin(entry)
        self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)


class Index:
    """Entries by key, with counted pins and an eviction order."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._heap: list[tuple[evict.Worth, str]] = []
        self.floor = 0.0
        self._tie = 0
        self.n_tokens = 0
        self.n_pinned_tokens = 0
        self.n_bytes = 0
        self.n_pinned_entries = 0
        self.n_kept_tokens = 0
        self.n_kept_entries = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    @property
    def n_evictable_tokens(self) -> int:
        """Tokens of entries that nobody pins."""
        return self.n_tokens - self.n_pinned_tokens

    @property
    def n_evictable_entries(self) -> int:
        """Entries that nobody pins."""
        return len(self._entries) - self.n_pinned_entries

    def find(self, key: str, ids: bytes) -> Entry | None:
        """The entry under this key, if its token ids are these."""
        entry = self._entries.get(key)
        return entry if entry is not None and entry.ids == ids else None

    def insert(self, entry: Entry) -> None:
        """Take ownership of an entry.

        Raises:
            ValueError: the key is taken.
        """
        if entry.key in self._entries:
            raise ValueError(f"key {entry.key} is taken")
        self._entries[entry.key] = entry
        self.n_tokens += entry.n_tokens
        self.n_bytes += entry.n_bytes
        self._revalue(entry)

    def used(self, entry: Entry) -> None:
        """Note that a request took the entry from the cache."""
        entry.n_uses += 1
        self._revalue(entry)

    def keep(self, entry: Entry, *, kept: bool) -> None:
        """Let the entry leave after all that are not kept, or as any other."""
        change = int(kept) - int(entry.kept)
        entry.kept = kept
        self.n_kept_entries += change
        self.n_kept_tokens += change * entry.n_tokens
        self._revalue(entry)

    def pin(self, entry: Entry) -> None:
        """Add a reader."""
        entry.n_pins += 1
        if entry.n_pins == 1:
            self.n_pinned_tokens += entry.n_tokens
            self.n_pinned_entries += 1

    def unpin(self, entry: Entry) -> None:
        """Remove a reader.

        Raises:
            RuntimeError: there was none.
        """
        if entry.n_pins == 0:
            raise RuntimeError(f"entry {entry.key} was released more often than pinned")
        entry.n_pins -= 1
        if entry.n_pins == 0:
            self.n_pinned_tokens -= entry.n_tokens
            self.n_pinned_entries -= 1
            self._revalue(entry)

    def evicted(
        self, *, n_tokens: int = 0, n_entries: int = 0, only_on_probation: bool = False
    ) -> list[Entry]:
        """Remove the least worthy unpinned entries until both amounts are reached, if they can be.

        The caller frees what the returned entries own.

        Args:
            n_tokens: tokens to free.
            n_entries: entries to free.
            only_on_probation: stop at the first entry that a request ever used.
        """
        victims: list[Entry] = []
        freed_tokens = 0
        while freed_tokens < n_tokens or len(victims) < n_entries:
            worth = self.least_worth()
            if worth is None or (only_on_probation and worth.settled):
                break
            entry = self._entries[heapq.heappop(self._heap)[1]]
            if worth.settled:
                self.raise_floor(worth.value)
            self._drop(entry)
            victims.append(entry)
            freed_tokens += entry.n_tokens
        return victims

    def least_worth(self) -> evict.Worth | None:
        """What the next entry to leave is worth, or None when all are pinned or there is none."""
        while self._heap:
            worth, key = self._heap[0]
            entry = self._entries.get(key)
            if entry is not None and entry.worth == worth and not entry.n_pins:
                return worth
            heapq.heappop(self._heap)
        return None

    def raise_floor(self, value: float) -> None:
        """Something of this worth left: from now on, what is used is worth that much more."""
        self.floor = max(self.floor, value)

    def remove(self, entry: Entry) -> None:
        """Remove an entry that nobody pins; the caller frees what it owns.

        Raises:
            RuntimeError: it has readers.
        """
        if entry.n_pins:
            raise RuntimeError(f"entry {entry.key} has {entry.n_pins} readers")
        self._drop(entry)

    def clear(self) -> list[Entry]:
        """Forget everything, pinned or not; the caller frees what the returned entries own."""
        entries = list(self._entries.values())
        self.__init__()  # type: ignore[misc]
        return entries

    def _drop(self, entry: Entry) -> None:
        del self._entries[entry.key]
        self.n_tokens -= entry.n_tokens
        self.n_bytes -= entry.n_bytes
        self.n_kept_tokens -= entry.n_tokens * entry.kept
        self.n_kept_entries -= entry.kept

    def _revalue(self, entry: Entry) -> None:
        self._tie += 1
        entry.worth = evict.worth(
            n_tokens=entry.n_tokens,
            n_bytes=entry.n_bytes,
            n_uses=entry.n_uses,
            floor=self.floor,
            tie=self._tie,
            kept=entry.kept,
        )
        heapq.heappush(self._heap, (entry.worth, entry.key))
        if len(self._heap) > 2 * len(self._entries) + 64:
            self._heap = [(e.worth, e.key) for e in self._entries.values() if e.worth is not None]
            heapq.heapify(self._heap)

    def check_integrity(self, slots: Iterable[Any] | None = None) -> None:
        """Recount everything.

        Args:
            slots: all slots of all entries, when the caller can list them; none may appear twice.

        Raises:
            AssertionError: a size differs from the sum of its parts, or a slot is owned twice.
        """
        entries = self._entries.values()
        assert self.n_tokens == sum(e.n_tokens for e in entries)
        assert self.n_bytes == sum(e.n_bytes for e in entries)
        assert self.n_pinned_tokens == sum(e.n_tokens for e in entries if e.n_pins)
        assert self.n_pinned_entries == sum(1 for e in entries if e.n_pins)
        assert all(e.n_pins >= 0 for e in entries)
        assert self.n_kept_tokens == sum(e.n_tokens for e in entries if e.kept)
        assert self.n_kept_entries == sum(1 for e in entries if e.kept)
        live = {(worth, key) for worth, key in self._heap}
        assert all(e.n_pins or (e.worth, e.key) in live for e in entries)
        if slots is not None:
            listed = list(slots)
            assert len(listed) == len(set(listed))
