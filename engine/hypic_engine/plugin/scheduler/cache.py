"""The segment cache behind SGLang's prefix-cache interface, a stock prefix tree beside it.

Prompts without segments go to the tree, as if segments were not cached; prompts with segments and
fills never enter it. Both take their tokens from SGLang's one allocator. Does not schedule
(`scheduling`), compute (`forward`) or decide who leaves (`core.evict`).
"""

import uuid
from collections.abc import Callable
from typing import Any

import torch
from sglang.srt.mem_cache.base_prefix_cache import (
    DecLockRefParams,
    DecLockRefResult,
    EvictParams,
    EvictResult,
    IncLockRefResult,
    MatchPrefixParams,
    MatchResult,
)
from torch import Tensor

from ...core.entry import Entry
from ...core.evict import Choice, Side, choice
from ...core.ledger import Ledger
from ..prompts import Capture, Prompt
from ..spans import positions
from .copies import MovedCopies
from .metrics import Metrics
from .prefixes import Prefixes
from .reader import Reader
from .sizes import Sizes
from .store import Store


def _nothing() -> None:
    """Nobody waits before `scheduling` is attached, and nobody checks."""


class SegmentCache(Sizes):
    """Entries and prefixes, and what each running request holds of them."""

    def __init__(
        self,
        params: Any,
        *,
        store: Store,
        prefixes: Prefixes,
        reader: Reader,
        ledger: Ledger,
        metrics: Metrics,
    ) -> None:
        self.req_to_token_pool = params.req_to_token_pool
        self.token_to_kv_pool_allocator = params.token_to_kv_pool_allocator
        self.page_size = params.page_size
        self.disable = False
        self.device = params.token_to_kv_pool_allocator.device
        self.store = store
        self.prefixes = prefixes
        self.reader = reader
        self.ledger = ledger
        self.metrics = metrics
        self.copies = MovedCopies(params.token_to_kv_pool_allocator)
        # While a prompt waits for memory none may pass it, and nobody need look for prefixes.
        self.queue_waits = False
        self.before_reset: Callable[[], None] = _nothing
        self.after_change: Callable[[], None] = _nothing

    # What SGLang's scheduler asks.

    def match_prefix(self, params: MatchPrefixParams) -> MatchResult:
        """The slots that stand for a ready prompt's interiors; a plain prompt's longest prefix.

        The number of a prompt's slots is what counts: it makes SGLang prefill the rest and no more.
        `batching` replaces them by the moved copies. Changes nothing but ``req.hypic_prompt``.
        """
        tree = self.prefixes.tree
        plain = params.req is None or self.is_plain(params.req)
        if tree is not None and plain and not self.queue_waits:
            result: MatchResult = tree.match_prefix(params)
            return result
        prompt = self.prompt_of(params.req) if params.req is not None else None
        ready = prompt is not None and self.take_entries(prompt)
        entries = [] if prompt is None or not ready else prompt.interior_slots()
        slots = torch.cat([torch.empty(0, dtype=torch.int64, device=self.device), *entries])
        root = tree.root_node if tree is not None else None
        return MatchResult(
            device_indices=slots,
            last_device_node=root,
            last_host_node=root,
            best_match_node=root,
            cache_protected_len=0,
        )

    def cache_unfinished_req(self, req: Any, chunked: bool = False, **_: Any) -> None:  # noqa: FBT001, FBT002
        """A plain prompt enters the tree; any other keeps its row as it is.

        Called once its prefill is over; its copies are made, so it needs its entries no more.
        """
        if self.prefixes.tree is not None and self.is_plain(req):
            self.prefixes.tree.cache_unfinished_req(req, chunked)
            self.after_change()
            return
        prompt: Prompt | None = getattr(req, "hypic_prompt", None)
        if prompt is not None and prompt.pins is not None:
            prompt.pins.release()
            prompt.entries = ()
        row = self.req_to_token_pool.req_to_token[req.req_pool_idx, : req.fill_len]
        req.prefix_indices = row.to(dtype=torch.int64, copy=True)

    def cache_finished_req(self, req: Any, is_insert: bool = True, **_: Any) -> None:  # noqa: FBT001, FBT002
        """Free what the request owns, or make an entry or a prefix of it. Once per admission."""
        capture: Capture | None = getattr(req, "hypic_capture", None)
        if capture is not None:
            req.hypic_capture = None
            if not is_insert:
                self.store.discard(capture)
                capture = None
        if self.prefixes.tree is not None and self.is_plain(req):
            if capture is not None:
                self.store.keep_copy(capture, self._row(req, capture.wanted.segment.length))
            self.prefixes.tree.cache_finished_req(req, is_insert)
        else:
            self._end(req, capture)
        self.metrics.sizes(self.store.index, self.store.pool)
        self.after_change()

    def evict(self, params: EvictParams) -> EvictResult:
        """Free at least this much of what nobody uses, if there is as much; worth decides whose."""
        n_tokens = 0
        while n_tokens < params.num_tokens:
            index = self.store.index
            next_out = choice(index.least_worth(), self.prefixes.least_worth(index.floor))
            if next_out is None:
                break
            n_tokens += self._evict_one(next_out)
        n_states = 0
        if self.prefixes.tree is not None and params.mamba_num:
            states = self.prefixes.tree.evict(EvictParams(mamba_num=params.mamba_num))
            n_states = states.mamba_num_evicted
        self.after_change()
        return EvictResult(num_tokens_evicted=n_tokens, mamba_num_evicted=n_states)

    def inc_lock_ref(self, node: Any) -> IncLockRefResult:
        """Protect a prefix; a prompt holds its entries by counted pins of its own."""
        tree = self.prefixes.tree
        return tree.inc_lock_ref(node) if tree is not None else IncLockRefResult(delta=0)

    def dec_lock_ref(self, node: Any, params: DecLockRefParams | None = None) -> DecLockRefResult:
        """Undo `inc_lock_ref`."""
        tree = self.prefixes.tree
        return tree.dec_lock_ref(node, params) if tree is not None else DecLockRefResult(delta=0)

    def reset(self) -> None:
        """Forget everything; SGLang clears the allocators itself. A new epoch begins."""
        self.before_reset()
        self.store.clear()
        if self.prefixes.tree is not None:
            self.prefixes.tree.reset()
        self.ledger.restarted(uuid.uuid4().hex)
        self.metrics.sizes(self.store.index, self.store.pool)

    def renew(self) -> None:
        """Other weights: no segment from before is found again, whoever still reads it."""
        self.reader.renew()
        self.store.free(self.store.index.evicted(n_entries=len(self.store.index)), reason="weights")
        self.ledger.restarted(uuid.uuid4().hex)
        self.metrics.sizes(self.store.index, self.store.pool)

    def dismiss(self, entries: list[Entry]) -> None:
        """Evict these, which nobody reads, because somebody asked for it."""
        for entry in entries:
            self.store.index.remove(entry)
        self.store.free(entries, reason="asked")
        self.metrics.sizes(self.store.index, self.store.pool)
        self.after_change()

    # What scheduling asks.

    def is_plain(self, request: Any) -> bool:
        """Whether the request is none of ours: it brings no segments and is no fill. Cached."""
        if not hasattr(request, "hypic_plain"):
            request.hypic_plain = self.reader.is_plain(request)
        plain: bool = request.hypic_plain
        return plain

    def prompt_of(self, request: Any) -> Prompt | None:
        """The request's prompt, parsed once."""
        if not hasattr(request, "hypic_prompt"):
            request.hypic_prompt = self.reader.prompt(request)
        prompt: Prompt | None = request.hypic_prompt
        return prompt

    def entry(self, prompt: Prompt, i: int) -> Entry | None:
        """The entry of the prompt's i-th interior, if it is there."""
        wanted = prompt.wanted[i]
        return self.store.index.find(wanted.key, wanted.ids)

    def take_entries(self, prompt: Prompt) -> bool:
        """Whether all entries are there; if so they are noted in the prompt."""
        entries = [self.entry(prompt, i) for i in range(len(prompt.wanted))]
        if any(entry is None for entry in entries):
            return False
        prompt.entries = tuple(entry for entry in entries if entry is not None)
        return True

    def forget_match(self, req: Any) -> None:
        """A request that was looked at and not admitted keeps no state slot while it waits.

        The prefix that it matched may be evicted meanwhile; the next look matches anew.
        """
        if req.req_pool_idx is not None or req.mamba_pool_idx is None:
            return
        self.req_to_token_pool.mamba_allocator.free(req.mamba_pool_idx.unsqueeze(-1))
        req.mamba_pool_idx = req.mamba_cow_src_index = None

    # How memory comes back.

    def _end(self, req: Any, capture: Capture | None) -> None:
        row = self._row(req, req.pop_committed_kv_cache())
        prompt: Prompt | None = getattr(req, "hypic_prompt", None)
        n_kept = 0
        if capture is not None:
            n_kept = self.store.keep(capture, row[: capture.wanted.segment.length])
        elif prompt is not None:
            row = row[positions(prompt.layout.until(len(row)).runs)]
            self.copies.drop(prompt)
            prompt.release()
        self.token_to_kv_pool_allocator.free(row[n_kept:].to(torch.int64))
        if self.supports_mamba():
            self.req_to_token_pool.free_mamba_cache(req)

    def _evict_one(self, next_out: Choice) -> int:
        if next_out.side is Side.PREFIX:
            self.store.index.raise_floor(next_out.worth.value)
            return self.prefixes.evict_one()
        victims = self.store.index.evicted(n_entries=1)
        self.store.free(victims, reason=next_out.reason)
        return sum(entry.n_tokens for entry in victims)

    def _row(self, req: Any, n_tokens: int) -> Tensor:
        row: Tensor = self.req_to_token_pool.req_to_token[req.req_pool_idx, :n_tokens]
        return row
