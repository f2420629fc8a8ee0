"""Hooks that turn admitted requests into a batch.

Gives slots to computed tokens and moved copies, picks the tokens that are computed, notes what is
kept, and makes the plan of the forward pass. Who is admitted is `scheduling`'s; what clients are
told is `answers`'.
"""

from collections.abc import Callable
from typing import Any

import torch
from sglang.srt.mem_cache.base_prefix_cache import EvictParams
from sglang.srt.mem_cache.common import alloc_req_slots, alloc_token_slots
from sglang.srt.utils.common import is_pin_memory_available

from ...core.layout import cacheable
from ..prompts import Capture, Prompt
from ..runner.planning import forward_plan
from ..settings import Settings
from ..spans import Span, positions
from .answers import Answers
from .cache import SegmentCache
from .fills import Fills


def _runs(req: Any, prompt: Prompt | None) -> list[Span]:
    """What is computed of a request."""
    if prompt is None:
        return [(len(req.prefix_indices), req.fill_len)]
    return list(prompt.layout.until(req.fill_len).runs)


def _taken(prompt: Prompt | None) -> list[Span]:
    """What is taken from the cache and moved."""
    interiors = () if prompt is None else prompt.layout.interiors
    return [(interior.start, interior.end) for interior in interiors]


class Batching:
    """One scheduler's hooks on its batches; attached when the scheduler exists."""

    def __init__(self, settings: Settings, answers: Answers) -> None:
        self._settings = settings
        self._answers = answers
        self._cache: SegmentCache
        self._fills: Fills

    def attach(self, cache: SegmentCache, fills: Fills) -> None:
        """Know the cache and the fills in flight."""
        self._cache = cache
        self._fills = fills
        self._answers.attach(cache.metrics)

    def allocate(self, original: Callable[..., Any], batch: Any) -> Any:
        """Around ``alloc_for_extend``: slots for computed tokens and for moved copies."""
        prompts = [self._running_prompt(req) for req in batch.reqs]
        if not any(prompts):
            return original(batch)
        runs = [_runs(req, prompt) for req, prompt in zip(batch.reqs, prompts, strict=True)]
        taken = [_taken(prompt) for prompt in prompts]
        pool = batch.req_to_token_pool
        rows = torch.tensor(alloc_req_slots(pool, batch.reqs, batch.tree_cache))
        ours = [prompt for prompt in prompts if prompt]
        n_computed, n_moved = batch.extend_num_tokens, self._cache.copies.n_to_move(*ours)
        slots = alloc_token_slots(batch.tree_cache, n_computed + n_moved)
        self._cache.copies.take(ours, slots[n_computed:])
        self._write(pool, rows, runs, slots[:n_computed])
        read = [copy.slots for prompt in ours for copy in prompt.copies]
        self._write(pool, rows, taken, torch.cat(read))
        for req, row, prompt in zip(batch.reqs, rows.tolist(), prompts, strict=True):
            if prompt is None:
                prefix = req.prefix_indices
                pool.write((row, slice(0, len(prefix))), prefix.to(torch.int32))
        return slots[:n_computed], rows.to(batch.device, non_blocking=True), rows

    def _write(
        self, pool: Any, rows: torch.Tensor, spans: list[list[Span]], slots: torch.Tensor
    ) -> None:
        """Note in SGLang's token table where the tokens of each row's spans lie."""
        lengths = [sum(end - start for start, end in own) for own in spans]
        where = rows.repeat_interleave(torch.tensor(lengths)).to(self._cache.device)
        tokens = positions([span for own in spans for span in own]).to(self._cache.device)
        pool.write((where, tokens), slots.to(torch.int32))

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
                self._begin_plain(req)
            else:
                self._begin(req, prompt)
        captures = [getattr(req, "hypic_capture", None) for req in batch.reqs]
        if any(prompts):
            parts = [
                torch.frombuffer(req.get_fill_ids(), dtype=torch.int64)[positions(_runs(req, own))]
                for req, own in zip(batch.reqs, prompts, strict=True)
            ]
            ids = torch.cat(parts)
            pin = is_pin_memory_available(batch.device)
            batch.prefill_input_ids_cpu = ids.pin_memory() if pin else ids
        if batch.mamba_track_mask is not None:  # states that the tree may be given
            plain = [self._cache.is_plain(req) for req in batch.reqs]
            batch.mamba_track_mask &= torch.tensor(plain, device=batch.device)
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

    def _begin_plain(self, req: Any) -> None:
        """A prompt that takes no segment is computed; it may become one itself."""
        if req.retracted_stain or req.output_ids or req.to_finish:
            return
        if hasattr(req, "hypic_capture"):  # a fill
            return
        req.hypic_capture = None
        self._answers.note_plain(req, n_in_place=self._cache.reader.n_segments(req))
        if req.positional_embed_overrides is None:
            self._capture(req)

    def _capture(self, req: Any) -> None:
        if req.prefix_indices.numel():  # its operators would lack what the prefix did
            return
        wanted = self._cache.reader.plain(req)
        seam, n_min = self._settings.seam, self._settings.min_tokens
        if wanted is None or not cacheable(wanted.segment.length, seam=seam, min_tokens=n_min):
            return
        held = self._cache.store.index.find(wanted.key, wanted.ids)
        if held is not None:
            self._cache.store.alias(held, wanted.digest)
            return
        operator = self._cache.store.operator_slot(on_probation=True)
        if operator is not None:
            n_seam = seam.n_tokens(wanted.segment.length)
            req.hypic_capture = Capture(wanted, n_seam, operator, self._cache.ledger.epoch)

    def _begin(self, req: Any, prompt: Prompt) -> None:
        """A prompt that takes segments is assembled."""
        if req.retracted_stain:
            return
        for entry in prompt.entries:
            self._cache.store.index.used(entry)
        self._answers.note(req, prompt)
