"""The numbered record of what was stored and removed, and a mirror of what is held.

One thread writes, others read; a lock covers both. Sends nothing: `plugin.control` serves it.
"""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from ..contract import events


class Ledger:
    """Events of one epoch in a bounded ring, and the snapshot they lead to."""

    def __init__(self, epoch: str, *, capacity: int = events.RING_EVENTS) -> None:
        self._lock = threading.Lock()
        self._ring: deque[events.Line] = deque(maxlen=capacity)
        self._held: dict[str, events.Item] = {}
        self._seq = 0
        self._epoch = epoch
        self._listeners: list[Callable[[], None]] = []

    @property
    def epoch(self) -> str:
        """Names everything since the last start, flush or weight update."""
        return self._epoch

    def listen(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` from the writer's thread after each event."""
        self._listeners.append(listener)

    def stored(self, item: events.Item) -> None:
        """The segment can be used from now on."""
        with self._lock:
            self._seq += 1
            self._held[item.key] = item
            self._ring.append(events.Stored(self._seq, item))
        self._notify()

    def alias(self, key: str, digest: str) -> None:
        """A held segment can be reached under one more digest."""
        with self._lock:
            item = self._held.get(key)
            if item is None or digest in item.digests:
                return
            self._seq += 1
            self._held[key] = replace(item, digests=(*item.digests, digest))
            self._ring.append(events.Alias(self._seq, self._held[key]))
        self._notify()

    def removed(self, key: str) -> None:
        """The segment is gone."""
        with self._lock:
            if self._held.pop(key, None) is None:
                return
            self._seq += 1
            self._ring.append(events.Removed(self._seq, key))
        self._notify()

    def restarted(self, epoch: str) -> None:
        """Everything is gone and a new epoch begins."""
        with self._lock:
            self._epoch = epoch
            self._held.clear()
            self._ring.clear()
            self._seq = 0
        self._notify()

    def position(self) -> tuple[str, int]:
        """The epoch and the last sequence number given."""
        with self._lock:
            return self._epoch, self._seq

    def after(self, epoch: str, seq: int) -> list[events.Line] | None:
        """Events of ``epoch`` after ``seq``, or None when they are not known any more."""
        with self._lock:
            oldest = self._seq - len(self._ring)
            if epoch != self._epoch or not oldest <= seq <= self._seq:
                return None
            skip = seq - oldest
            return [line for i, line in enumerate(self._ring) if i >= skip]

    def page(self, cursor: str | None, *, limit: int = events.PAGE_ITEMS) -> events.Page:
        """One page of what is held, in the order of keys.

        A cursor is the last key of the page before. Later pages may belong to a later ``seq``; a
        reader follows events from the first page's, which makes the whole consistent.
        """
        with self._lock:
            keys = sorted(key for key in self._held if cursor is None or key > cursor)
            items = tuple(self._held[key] for key in keys[:limit])
            more = keys[limit - 1] if len(keys) > limit else None
            return events.Page(self._epoch, self._seq, items, more)

    def _notify(self) -> None:
        for listener in self._listeners:
            listener()
