"""The segment cache behind SGLang's prefix-cache interface.

Owns entries: their key/value slots and operators, from the end of a fill to eviction. Does not
schedule (`scheduling`) or compute (`forward`). Prompts without segments own their slots until they
finish and then may become a segment themselves.
"""

import uuid
from collections.abc import Callable
from typing import Any

import torch
from sglang.srt.mem_cache.base_prefix_cache import (
    BasePrefixCache,
    DecLockRefParams,
    DecLockRefResult,
    EvictParams,
    EvictResult,
    IncLockRefResult,
    MatchPrefixParams,
    MatchResult,
)
from torch import Tensor

from ...contract import events
from ...core.index import Entry, Index
from ...core.ledger import Ledger
from ..requests import Capture, Prompt, Reader
from ..runner.pool import OperatorPool
from .metrics import Metrics


def _ignore(*_: object) -> None:
    """Nobody waits before `scheduling` is attached."""


class SegmentCache(BasePrefixCache):  # type: ignore[misc]
    """Entries by segment, and what each running request holds of them."""

    def __init__(
        self, params: Any, *, pool: OperatorPool, reader: Reader, ledger: Ledger, metrics: Metrics
    ) -> None:
        self.req_to_token_pool = params.req_to_token_pool
        self.token_to_kv_pool_allocator = params.token_to_kv_pool_allocator
        self.page_size = params.page_size
        self.disable = False
        self.device = params.token_to_kv_pool_allocator.device
        self.pool = pool
        self.reader = reader
        self.ledger = ledger
        self.metrics = metrics
        self.index = Index()
        self.on_capture_end: Callable[[Capture, Entry | None], None] = _ignore
        self.before_reset: Callable[[], None] = _ignore
        kv = params.token_to_kv_pool_allocator.get_kvcache()
        size = kv.get_kv_size_bytes()  # a pair, or one number where keys and values are one row
        # SGLang counts in NumPy integers, which JSON does not know.
        n_bytes = int(sum(size)) if isinstance(size, tuple) else int(size)
        self._token_bytes = n_bytes // max(kv.size, 1)

    # What SGLang's scheduler asks.

    def match_prefix(self, params: MatchPrefixParams) -> MatchResult:
        """The slots that stand for a ready prompt's interiors; nothing for all others.

        Their number is what counts: it makes SGLang prefill the rest and no more. `scheduling`
        replaces them by the moved copies. Changes nothing but ``req.hypic_prompt``.
        """
        prompt = self.prompt_of(params.req) if params.req is not None else None
        ready = prompt is not None and self.take_entries(prompt)
        slots = self._interior_slots(prompt) if ready and prompt is not None else self._no_slots()
        return MatchResult(
            device_indices=slots,
            last_device_node=None,
            last_host_node=None,
            best_match_node=None,
            cache_protected_len=0,
        )

    def cache_unfinished_req(self, req: Any, chunked: bool = False, **_: Any) -> None:  # noqa: FBT001, FBT002
        """Keep the row as it is: nothing is inserted before a request ends.

        Called once its prefill is over; its copies are made, so it needs its entries no more.
        """
        prompt: Prompt | None = getattr(req, "hypic_prompt", None)
        if prompt is not None and prompt.pins is not None:
            prompt.pins.release()
            prompt.entries = ()
        row = self.req_to_token_pool.req_to_token[req.req_pool_idx, : req.fill_len]
        req.prefix_indices = row.to(dtype=torch.int64, copy=True)

    def cache_finished_req(self, req: Any, is_insert: bool = True, **_: Any) -> None:  # noqa: FBT001, FBT002
        """Free what the request owns, or make its prompt an entry. Called once per admission."""
        n_tokens = req.pop_committed_kv_cache()
        row = self.req_to_token_pool.req_to_token[req.req_pool_idx, :n_tokens]
        n_kept = 0
        capture: Capture | None = getattr(req, "hypic_capture", None)
        if capture is not None:
            req.hypic_capture = None
            n_kept = self._keep(capture, row) if is_insert else self.discard(capture)
        self.token_to_kv_pool_allocator.free(row[n_kept:].to(torch.int64))
        prompt: Prompt | None = getattr(req, "hypic_prompt", None)
        if prompt is not None:
            self.release(prompt)
        self.metrics.sizes(self.index, self.pool)

    def evict(self, params: EvictParams) -> EvictResult:
        """Free at least this many tokens of unpinned entries, if there are as many."""
        victims = self.index.evicted(n_tokens=params.num_tokens)
        self._free(victims, reason="kv")
        return EvictResult(num_tokens_evicted=sum(entry.n_tokens for entry in victims))

    def inc_lock_ref(self, node: Any) -> IncLockRefResult:
        """Nothing: a prompt holds its entries by counted pins of its own."""
        return IncLockRefResult(delta=0)

    def dec_lock_ref(self, node: Any, params: DecLockRefParams | None = None) -> DecLockRefResult:
        """Nothing, as `inc_lock_ref`."""
        return DecLockRefResult(delta=0)

    def reset(self) -> None:
        """Forget everything; SGLang clears the allocators itself. A new epoch begins."""
        self.before_reset()
        self.index.clear()
        self.pool.clear()
        self.ledger.restarted(uuid.uuid4().hex)
        self.metrics.sizes(self.index, self.pool)

    def renew(self) -> None:
        """Other weights: nothing from before is found again, whoever still reads it."""
        self.reader.renew()
        self._free(self.index.evicted(n_entries=len(self.index)), reason="weights")
        self.ledger.restarted(uuid.uuid4().hex)
        self.metrics.sizes(self.index, self.pool)

    def dismiss(self, entries: list[Entry]) -> None:
        """Evict these, which nobody reads, because somebody asked for it."""
        for entry in entries:
            self.index.remove(entry)
        self._free(entries, reason="asked")
        self.metrics.sizes(self.index, self.pool)

    def evictable_size(self) -> int:
        """Tokens that `evict` could free."""
        return self.index.n_evictable_tokens

    def protected_size(self) -> int:
        """All tokens that entries own.

        SGLang 0.5.14 counts nothing as evictable for hybrid models without a tree of states
        (``SchedulerPoolStatsObserver._get_mamba_token_info``), so its leak check is right only
        when evictable tokens are reported here.
        """
        return self.index.n_tokens

    def total_size(self) -> int:
        """All tokens that entries own."""
        return self.index.n_tokens

    def pretty_print(self) -> None:
        """One line a segment would be too much; the sizes are in the log already."""

    # What scheduling asks.

    def prompt_of(self, request: Any) -> Prompt | None:
        """The request's prompt, parsed once."""
        if not hasattr(request, "hypic_prompt"):
            request.hypic_prompt = self.reader.prompt(request)
        prompt: Prompt | None = request.hypic_prompt
        return prompt

    def entry(self, prompt: Prompt, i: int) -> Entry | None:
        """The entry of the prompt's i-th interior, if it is there."""
        wanted = prompt.wanted[i]
        return self.index.find(wanted.key, wanted.ids)

    def take_entries(self, prompt: Prompt) -> bool:
        """Whether all entries are there; if so they are noted in the prompt."""
        entries = [self.entry(prompt, i) for i in range(len(prompt.wanted))]
        if any(entry is None for entry in entries):
            return False
        prompt.entries = tuple(entry for entry in entries if entry is not None)
        return True

    def operator_slot(self, *, on_probation: bool = False) -> int | None:
        """A free operator slot, at the cost of the least worthy entry if need be.

        Args:
            on_probation: take it only from entries that are on probation themselves.
        """
        if not self.pool.n_free:
            victims = self.index.evicted(n_entries=1, only_on_probation=on_probation)
            self._free(victims, reason="operators")
        return self.pool.alloc()

    def alias(self, entry: Entry, digest: str) -> None:
        """Note one more digest under which clients reach an entry."""
        if digest and digest not in entry.digests:
            entry.digests.add(digest)
            self.ledger.alias(entry.key, digest)

    def release(self, prompt: Prompt) -> None:
        """Give back pins and reservations; the prompt may be planned anew."""
        if prompt.pins is not None:
            prompt.pins.release()
        prompt.pins, prompt.entries, prompt.moved = None, (), None
        prompt.filling.clear()
        prompt.reserved_tokens = 0
        prompt.admitted = False

    def discard(self, capture: Capture) -> int:
        """Give back the operator slot of a prefill that leaves no entry; 0 tokens are kept."""
        self.pool.free(capture.operator)
        self.on_capture_end(capture, None)
        return 0

    # How entries come and go.

    def _keep(self, capture: Capture, row: Tensor) -> int:
        wanted = capture.wanted
        if capture.epoch != self.ledger.epoch:
            return self.discard(capture)
        held = self.index.find(wanted.key, wanted.ids)
        if held is not None:
            self.alias(held, wanted.digest)
            self.pool.free(capture.operator)
            self.on_capture_end(capture, held)
            return 0
        n_tokens = wanted.segment.length
        entry = Entry(
            key=wanted.key,
            ids=wanted.ids,
            n_tokens=n_tokens,
            n_bytes=n_tokens * self._token_bytes + self.pool.slot_bytes,
            slots=row[:n_tokens].to(torch.int64, copy=True),
            operator=capture.operator,
            digests={wanted.digest} if wanted.digest else set(),
            salt=wanted.salt,
        )
        self.index.insert(entry)
        self.ledger.stored(
            events.Item(entry.key, tuple(entry.digests), entry.n_tokens, entry.n_bytes)
        )
        self.on_capture_end(capture, entry)
        return n_tokens

    def _free(self, victims: list[Entry], *, reason: str) -> None:
        for entry in victims:
            self.token_to_kv_pool_allocator.free(entry.slots)
            self.pool.free(entry.operator)
            self.ledger.removed(entry.key)
        self.metrics.evicted(len(victims), reason=reason)

    def _interior_slots(self, prompt: Prompt) -> Tensor:
        parts = [
            entry.slots[interior.seam :]
            for interior, entry in zip(prompt.layout.interiors, prompt.entries, strict=True)
        ]
        return torch.cat(parts)

    def _no_slots(self) -> Tensor:
        return torch.empty((0,), dtype=torch.int64, device=self.device)
