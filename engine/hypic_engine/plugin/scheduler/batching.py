"""Hooks that turn admitted requests into a batch, and on what leaves it.

Gives slots to computed tokens and moved copies, picks the tokens that are computed, notes what is
kept, and makes the plan of the forward pass. Who is admitted is `scheduling`'s.
"""

import time
from array import array
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from sglang.srt.mem_cache.base_prefix_cache import EvictParams
from sglang.srt.mem_cache.common import alloc_req_slots, alloc_token_slots
from sglang.srt.utils.common import flatten_arrays_to_pinned_cpu, is_pin_memory_available

from ...contract.details import Details
from ...core.layout import Layout, cacheable
from ..requests import Capture, Prompt
from ..runner.planning import forward_plan
from ..settings import Settings
from .cache import SegmentCache
from .fills import Fills


def _positions(layout: Layout) -> list[int]:
    return [position for start, end in layout.runs for position in range(start, end)]


class Batching:
    """One scheduler's hooks on its batches; attached when the scheduler exists."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._cache: SegmentCache
        self._fills: Fills

    def attach(self, cache: SegmentCache, fills: Fills) -> None:
        """Know the cache and the fills in flight."""
        self._cache = cache
        self._fills = fills

    def allocate(self, original: Callable[..., Any], batch: Any) -> Any:
        """Around ``alloc_for_extend``: slots for computed tokens and for moved copies."""
        prompts = [self._running_prompt(req) for req in batch.reqs]
        if not any(prompts):
            return original(batch)
        pool = batch.req_to_token_pool
        rows = alloc_req_slots(pool, batch.reqs, batch.tree_cache)
        n_moved = sum(prompt.layout.n_moved for prompt in prompts if prompt)
        slots = alloc_token_slots(batch.tree_cache, batch.extend_num_tokens + n_moved)
        computed, moved = slots[: batch.extend_num_tokens], slots[batch.extend_num_tokens :]
        at_computed = at_moved = 0
        for req, row, prompt in zip(batch.reqs, rows, prompts, strict=True):
            n_own = req.extend_input_len
            own = computed[at_computed : at_computed + n_own].to(torch.int32)
            at_computed += n_own
            if prompt is None:
                pool.write((row, slice(0, n_own)), own)
                continue
            layout = prompt.layout.until(req.fill_len)
            prompt.moved = moved[at_moved : at_moved + layout.n_moved]
            at_moved += layout.n_moved
            pool.write((row, self._tensor(_positions(layout))), own)
            taken = [p for i in layout.interiors for p in range(i.start, i.end)]
            pool.write((row, self._tensor(taken)), prompt.moved.to(torch.int32))
        rows_cpu = torch.tensor(rows, dtype=torch.int64)
        return computed, rows_cpu.to(batch.device, non_blocking=True), rows_cpu

    @staticmethod
    def make_room(cache: SegmentCache, num_tokens: int) -> None:
        """In place of ``evict_from_tree_cache``: evict what is missing.

        SGLang 0.5.14 evicts as many tokens as it needs, however many of them are free.
        """
        missing = num_tokens - cache.token_to_kv_pool_allocator.available_size()
        if missing > 0:
            cache.evict(EvictParams(num_tokens=missing))

    def prepared(self, result: object, batch: Any) -> None:
        """After ``ScheduleBatch.prepare_for_extend``: the right tokens, accounts and the plan."""
        prompts = [self._running_prompt(req) for req in batch.reqs]
        for req, prompt in zip(batch.reqs, prompts, strict=True):
            if prompt is None:
                self._capture_plain(req)
            else:
                self._account(req, prompt)
        captures = [getattr(req, "hypic_capture", None) for req in batch.reqs]
        if any(prompts):
            parts = [
                array("q", map(req.get_fill_ids().__getitem__, _positions(layout)))
                if prompt and (layout := prompt.layout.until(req.fill_len))
                else req.get_fill_ids()
                for req, prompt in zip(batch.reqs, prompts, strict=True)
            ]
            pin = is_pin_memory_available(batch.device)
            batch.prefill_input_ids_cpu = flatten_arrays_to_pinned_cpu(parts, pin)
        batch.hypic_plan = None
        if any(prompts) or any(captures):
            batch.hypic_plan = forward_plan(
                batch.reqs,
                prompts,
                captures,
                mode=self._settings.mode,
                device=batch.device,
            )
        self._fills.started(batch.reqs)

    def _running_prompt(self, req: Any) -> Prompt | None:
        prompt: Prompt | None = getattr(req, "hypic_prompt", None)
        return prompt if prompt is not None and prompt.admitted else None

    def _capture_plain(self, req: Any) -> None:
        ordinary = not (req.retracted_stain or req.output_ids or req.to_finish)
        if not ordinary or hasattr(req, "hypic_capture"):
            return
        if req.input_embeds is not None or req.positional_embed_overrides is not None:
            return
        req.hypic_capture = None
        self._cache.metrics.tokens(computed=req.extend_input_len)
        wanted = self._cache.reader.plain(req)
        seam, n_min = self._settings.seam, self._settings.min_tokens
        if wanted is None or not cacheable(wanted.segment.length, seam=seam, min_tokens=n_min):
            return
        held = self._cache.index.find(wanted.key, wanted.ids)
        if held is not None:
            self._cache.alias(held, wanted.digest)
            return
        operator = self._cache.operator_slot(on_probation=True)
        if operator is not None:
            n_seam = seam.n_tokens(wanted.segment.length)
            req.hypic_capture = Capture(wanted, n_seam, operator, self._cache.ledger.epoch)

    def _account(self, req: Any, prompt: Prompt) -> None:
        if req.retracted_stain:
            return
        for entry in prompt.entries:
            self._cache.index.used(entry)
        details = prompt.details()
        req.cached_tokens = req.cached_tokens_device = prompt.n_reused
        req.hypic_details, req.hypic_assembles_since = details, time.monotonic()
        self._cache.metrics.segments(
            hit=details.hit, filled=details.filled, in_place=details.in_place
        )
        n_filled = prompt.layout.n_moved - prompt.n_reused
        self._cache.metrics.tokens(
            reused=prompt.n_reused,
            recomputed=details.recomputed,
            filled=n_filled,
            computed=prompt.layout.n_computed - details.recomputed,
        )

    def _tensor(self, values: list[int]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.int64, device=self._cache.device)

    # Answering.

    def stream(
        self, original: Callable[..., Any], streamer: Any, reqs: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Around ``SchedulerOutputStreamer.stream_output``: nobody waits for a fill's token."""
        shown = [req for req in reqs if not Fills.is_fill(req)]
        if reqs and not shown:
            return None
        return original(streamer, shown, *args, **kwargs)

    def describe(self, result: Any, streamer: object, req: Any) -> Any:
        """After ``SchedulerOutputStreamer.get_cached_tokens_details``: add ours."""
        details: Details | None = getattr(req, "hypic_details", None)
        if details is None:
            return result
        if not details.assemble_ms:
            seconds = time.monotonic() - req.hypic_assembles_since
            self._cache.metrics.assembled(seconds)
            details = req.hypic_details = replace(details, assemble_ms=round(1e3 * seconds, 3))
        return {**(result or {"device": 0, "host": 0}), "pic": details.to_json()}
