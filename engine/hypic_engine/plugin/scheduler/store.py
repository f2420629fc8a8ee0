"""Entries and what they own: key/value slots and operators, from the end of a fill to eviction.

Knows SGLang's token allocator and our operator pool; knows no request and no schedule.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from sglang.srt.mem_cache.memory_pool import move_kv_cache_native
from torch import Tensor

from ...contract import events
from ...core.entry import Entry
from ...core.index import Index
from ...core.ledger import Ledger
from ..prompts import Capture
from ..runner.pool import OperatorPool
from .metrics import Metrics


def _ignore(*_: object) -> None:
    """Nobody waits before `scheduling` is attached."""


@contextmanager
def forward_stream(scheduler: Any, *tensors: Tensor) -> Iterator[None]:
    """Launch on the stream of the forward passes; ``tensors`` are used there."""
    if not scheduler.enable_overlap:
        yield
        return
    with scheduler.forward_stream_ctx:
        scheduler.forward_stream.wait_stream(scheduler.schedule_stream)
        yield
        for tensor in tensors:
            if tensor.is_cuda:
                tensor.record_stream(scheduler.forward_stream)


class Store:
    """Entries by segment.

    Attributes:
        index: which there are.
        pool: their operators.
        token_bytes: what one token's keys and values occupy.
        on_capture_end: told of every capture's end, with its entry or None.
        forward_stream: makes what is launched inside run after the forward passes under way and
            before all later ones.
    """

    def __init__(
        self, allocator: Any, *, pool: OperatorPool, ledger: Ledger, metrics: Metrics
    ) -> None:
        self._allocator = allocator
        self._ledger = ledger
        self._metrics = metrics
        self.index = Index()
        self.pool = pool
        kv = allocator.get_kvcache()
        size = kv.get_kv_size_bytes()  # a pair, or one number where keys and values are one row
        # SGLang counts in NumPy integers, which JSON does not know.
        n_bytes = int(sum(size)) if isinstance(size, tuple) else int(size)
        self.token_bytes = n_bytes // max(kv.size, 1)
        self.on_capture_end: Callable[[Capture, Entry | None], None] = _ignore
        self.forward_stream: Callable[..., AbstractContextManager[None]] = nullcontext

    def operator_slot(self, *, on_probation: bool = False) -> int | None:
        """A free operator slot, at the cost of the least worthy entry if need be.

        Args:
            on_probation: take it only from entries that are on probation themselves.
        """
        if not self.pool.slots.n_free:
            victims = self.index.evicted(n_entries=1, only_on_probation=on_probation)
            self.free(victims, reason="operators")
        return self.pool.slots.alloc()

    def alias(self, entry: Entry, digest: str) -> None:
        """Note one more digest under which clients reach an entry."""
        if digest and digest not in entry.digests:
            entry.digests.add(digest)
            self._ledger.alias(entry.key, digest)

    def discard(self, capture: Capture) -> None:
        """Give back the operator slot of a prefill that leaves no entry."""
        self.pool.slots.free(capture.operator)
        self.on_capture_end(capture, None)

    def keep(self, capture: Capture, slots: Tensor) -> int:
        """Make an entry of slots that were the request's; how many became the entry's."""
        if not self._wanted(capture):
            return 0
        self._insert(capture, slots.to(torch.int64, copy=True))
        return capture.wanted.segment.length

    def keep_copy(self, capture: Capture, slots: Tensor) -> None:
        """Make an entry with copies of these slots, if there is room that nobody used misses."""
        if not self._wanted(capture):
            return
        n_missing = slots.numel() - self._allocator.available_size()
        if n_missing > 0:
            victims = self.index.evicted(n_tokens=n_missing, only_on_probation=True)
            self.free(victims, reason="copies")
        own = self._allocator.alloc(slots.numel())
        if own is None:
            self.discard(capture)
            return
        source = slots.to(torch.int64, copy=True)
        keys_values = self._allocator.get_kvcache().full_kv_pool
        with self.forward_stream(own, source):
            move_kv_cache_native(keys_values.k_buffer, keys_values.v_buffer, own, source)
        self._insert(capture, own)

    def free(self, victims: list[Entry], *, reason: str) -> None:
        """Give back what these entries owned; they are out of the index already."""
        for entry in victims:
            self._allocator.free(entry.slots)
            self.pool.slots.free(entry.operator)
            self._ledger.removed(entry.key)
        self._metrics.evicted(len(victims), reason=reason)

    def clear(self) -> None:
        """Forget everything; SGLang clears its own allocators itself."""
        self.index.clear()
        self.pool.slots.clear()

    def _wanted(self, capture: Capture) -> bool:
        """Whether to make an entry of it; if not, the capture has ended."""
        wanted = capture.wanted
        if capture.epoch != self._ledger.epoch:
            self.discard(capture)
            return False
        held = self.index.find(wanted.key, wanted.ids)
        if held is None:
            return True
        self.alias(held, wanted.digest)
        self.pool.slots.free(capture.operator)
        self.on_capture_end(capture, held)
        return False

    def _insert(self, capture: Capture, slots: Tensor) -> None:
        wanted = capture.wanted
        n_tokens = wanted.segment.length
        entry = Entry(
            key=wanted.key,
            ids=wanted.ids,
            n_tokens=n_tokens,
            n_bytes=n_tokens * self.token_bytes + self.pool.slot_bytes,
            slots=slots,
            operator=capture.operator,
            digests={wanted.digest} if wanted.digest else set(),
            salt=wanted.salt,
        )
        self.index.insert(entry)
        self._ledger.stored(
            events.Item(entry.key, tuple(entry.digests), entry.n_tokens, entry.n_bytes)
        )
        self.on_capture_end(capture, entry)
