"""Obeys orders about cached segments, in the scheduler's own thread: pin, unpin, evict.

A pinned segment leaves after all others, and only when a request could not be served otherwise; how
much may be pinned is bounded, so that everybody else keeps a cache too.
"""

from typing import Any

from sglang.utils import TypeBasedDispatcher

from ...core.entry import Entry
from ..orders import Action, Order, Outcome
from .cache import SegmentCache

# Of key/value tokens and of operator slots alike.
PINNED_SHARE = 0.5


class Keeping:
    """Orders of one scheduler; each rank obeys the same ones at the same point."""

    def __init__(self, cache: SegmentCache) -> None:
        self._cache = cache

    def listen(self, scheduler: Any) -> None:
        """Have SGLang's dispatcher bring orders here."""
        scheduler._request_dispatcher += TypeBasedDispatcher([(Order, self.obey)])  # noqa: SLF001

    @property
    def limit_tokens(self) -> int:
        """Tokens that may be pinned."""
        return int(self._cache.token_to_kv_pool_allocator.size * PINNED_SHARE)

    @property
    def _limit_segments(self) -> int:
        return int(self._cache.store.pool.slots.n * PINNED_SHARE)

    def describe(self) -> dict[str, int]:
        """What is pinned, and how much may be; any thread."""
        index = self._cache.store.index
        return {
            "segments": index.n_kept_entries,
            "tokens": index.n_kept_tokens,
            "limit_tokens": self.limit_tokens,
        }

    def obey(self, order: Order) -> Outcome:
        """Do what is ordered, all of it or nothing."""
        meant = [
            entry
            for entry in self._cache.store.index
            if order.selection.takes(key=entry.key, digests=entry.digests, salt=entry.salt)
        ]
        match order.action:
            case Action.PIN:
                refused = self._too_much([entry for entry in meant if not entry.kept])
                return self._keep([] if refused else meant, kept=True, refused=refused)
            case Action.UNPIN:
                return self._keep(meant, kept=False)
            case Action.EVICT:
                free = [entry for entry in meant if not entry.n_pins]
                self._cache.dismiss(free)
                return self._outcome(free, n_in_use=len(meant) - len(free))

    def _too_much(self, more: list[Entry]) -> str:
        index = self._cache.store.index
        n_tokens = index.n_kept_tokens + sum(entry.n_tokens for entry in more)
        n_segments = index.n_kept_entries + len(more)
        if n_tokens > self.limit_tokens:
            return f"{n_tokens} tokens would be pinned; at most {self.limit_tokens} are allowed"
        if n_segments > self._limit_segments:
            return (
                f"{n_segments} segments would be pinned; at most {self._limit_segments} are allowed"
            )
        return ""

    def _keep(self, entries: list[Entry], *, kept: bool, refused: str = "") -> Outcome:
        for entry in entries:
            self._cache.store.index.keep(entry, kept=kept)
        return self._outcome(entries, refused=refused)

    def _outcome(self, entries: list[Entry], *, n_in_use: int = 0, refused: str = "") -> Outcome:
        return Outcome(
            n_segments=len(entries),
            n_tokens=sum(entry.n_tokens for entry in entries),
            n_in_use=n_in_use,
            n_pinned_tokens=self._cache.store.index.n_kept_tokens,
            limit_tokens=self.limit_tokens,
            refused=refused,
        )
