"""Hooks on SGLang's scheduler: hold a prompt until its segments are there, then let it prefill.

Decides through `core.admission`; moves no tensor (`forward`) and keeps no entry (`cache`).
"""

from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from sglang.srt.managers.schedule_policy import CLIP_MAX_NEW_TOKENS, AddReqResult
from sglang.srt.mem_cache.common import alloc_req_slots, alloc_token_slots
from sglang.srt.utils.common import flatten_arrays_to_pinned_cpu, is_pin_memory_available

from ..core import admission
from ..core.index import Entry, Pins
from ..core.layout import cacheable
from .cache import SegmentCache
from .fills import Fills
from .plan import ForwardPlan
from .requests import Capture, Prompt
from .settings import Settings

# What SGLang's own budget adds to a request and to a comparison, and a fill's token.
MARGIN_TOKENS = 3


def _new_tokens(request: Any) -> int:
    left = request.sampling_params.max_new_tokens - len(request.output_ids)
    return int(min(max(left, 0), CLIP_MAX_NEW_TOKENS))


@contextmanager
def _new_tokens_at_most(request: Any, n_tokens: int) -> Iterator[None]:
    """Let SGLang budget for fewer new tokens than the request may get."""
    params = request.sampling_params
    wanted = params.max_new_tokens
    params.max_new_tokens = min(wanted, n_tokens + len(request.output_ids))
    try:
        yield
    finally:
        params.max_new_tokens = wanted


def _is_busy(adder: Any) -> bool:
    return bool(adder.can_run_list or (adder.running_batch and adder.running_batch.reqs))


def _positions(layout: Any) -> list[int]:
    return [position for start, end in layout.runs for position in range(start, end)]


class Scheduling:
    """One scheduler's hooks; made at start, attached when the scheduler exists."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._scheduler: Any = None
        self._cache: SegmentCache
        self._fills: Fills

    def attach(self, result: object, scheduler: Any, *args: object, **kwargs: object) -> None:
        """After ``Scheduler.__init__``."""
        self._scheduler = scheduler
        self._cache = scheduler.tree_cache
        self._fills = Fills(scheduler, self._cache, self._settings)
        self._cache.on_capture_end = self._fills.ended
        self._cache.before_reset = self._fills.abandon

    def describe_engine(self) -> dict[str, Any]:
        """Sizes for ``/pic/info``, and how long the scheduler has been silent. Any thread."""
        if self._scheduler is None:
            return {"started": False}
        index, pool = self._cache.index, self._cache.pool
        return {
            "started": True,
            "computing": bool(self._scheduler.cur_batch),
            "silent_s": round(self._fills.silent_s, 1),
            "segments": len(index),
            "tokens": index.n_tokens,
            "bytes": index.n_bytes,
            "pinned_segments": index.n_pinned_entries,
            "operator_slots": {"total": pool.n_slots, "free": pool.n_free},
            "kv_tokens": self._cache.token_to_kv_pool_allocator.size,
        }

    # Entering the queue.

    def enqueue(
        self, original: Callable[..., Any], scheduler: Any, req: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Around ``Scheduler._add_request_to_queue``: refuse what could never fit.

        A fill comes here only when SGLang retracts it; whoever still needs it asks anew.
        """
        if Fills.is_fill(req):
            return None
        if getattr(req, "to_finish", None) is not None or req.finished_reason is not None:
            req.hypic_prompt = None
        prompt = self._cache.prompt_of(req)
        if prompt is not None and not prompt.admitted:
            reason = admission.never_fits(self._need(req, prompt, found=()), self._capacity())
            if reason is not None:
                req.hypic_prompt = None
                req.set_finish_with_abort(reason)
        return original(scheduler, req, *args, **kwargs)

    def sweep(self, result: object, scheduler: Any, *args: object) -> None:
        """After ``Scheduler.process_input_requests``: forget what was aborted in the queue."""
        self._fills.sweep()
        self._fills.beat()

    def weights_changed(self, result: object, *args: object) -> None:
        """After ``flush_cache_after_weight_update``, which flushes only when it was asked to."""
        self._fills.abandon()
        self._cache.renew()
        for req in self._scheduler.waiting_queue:
            if hasattr(req, "hypic_prompt"):
                del req.hypic_prompt

    # Leaving the queue.

    def admit(
        self, original: Callable[..., Any], adder: Any, req: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Around ``PrefillAdder.add_one_req``: hold, or count the moved copies and go on."""
        prompt = self._cache.prompt_of(req)
        holds = prompt is not None and prompt.pins is not None
        if getattr(adder, "hypic_blocked", False) and not (holds or Fills.is_fill(req)):
            return AddReqResult.CONTINUE
        if prompt is not None and not self._ready(adder, req, prompt):
            return AddReqResult.CONTINUE
        if prompt is None:
            outcome = original(adder, req, *args, **kwargs)
        else:
            outcome = self._add(original, adder, req, prompt, *args, **kwargs)
        # SGLang stops looking at the queue until something finishes; a fill may be further back.
        nothing_runs = outcome is AddReqResult.NO_TOKEN and not _is_busy(adder)
        return AddReqResult.CONTINUE if nothing_runs else outcome

    def _add(
        self,
        original: Callable[..., Any],
        adder: Any,
        req: Any,
        prompt: Prompt,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        moved, n_new = prompt.layout.n_moved, self._budgeted_new_tokens(req, prompt)
        if req.extend_input_len + moved + n_new + adder.page_size >= adder.rem_total_tokens:
            return AddReqResult.NO_TOKEN
        n_before = len(adder.can_run_list)
        with _new_tokens_at_most(req, n_new):
            outcome = original(adder, req, *args, **kwargs)
        if len(adder.can_run_list) > n_before:
            adder.rem_total_token_offset += moved
            adder.cur_rem_token_offset += moved
            self._fills.admitted(prompt)
        return outcome

    def _ready(self, adder: Any, req: Any, prompt: Prompt) -> bool:
        found = {e.key: e for i in range(len(prompt.wanted)) if (e := self._cache.entry(prompt, i))}
        unpinned = [entry for entry in found.values() if not entry.n_pins]
        room = self._room(adder, prompt, unpinned)
        if prompt.pins is None:
            here = frozenset(found)
            prompt.found = here if prompt.found is None else here & prompt.found
            need = self._need(req, prompt, found=found)
            if admission.verdict(need, room) is admission.Verdict.WAIT:
                adder.hypic_blocked = True
                return False
            prompt.pins = Pins(self._cache.index)
            prompt.reserved_tokens = need.n_tokens
            self._fills.wait(req, prompt)
        elif room.n_tokens < 0:  # this pass has promised to others what would be pinned
            return False
        for wanted in prompt.wanted:
            if wanted.key in found:
                self._fills.pin(prompt, found[wanted.key])
                self._cache.alias(found[wanted.key], wanted.digest)
        if not self._cache.take_entries(prompt):
            self._fills.submit(req, prompt)
            return False
        return True

    def _budgeted_new_tokens(self, req: Any, prompt: Prompt) -> int:
        """New tokens to keep free, when what else the prompt needs leaves so many.

        A prompt needs its segments only until its prefill is over; they may then make room.
        """
        segments: int = sum({w.key: w.segment.length for w in prompt.wanted}.values())
        size: int = self._cache.token_to_kv_pool_allocator.size
        left = size - segments - self._n_built(req, prompt) - MARGIN_TOKENS
        return min(_new_tokens(req), max(left, 1))

    @staticmethod
    def _n_built(req: Any, prompt: Prompt) -> int:
        return prompt.layout.n_moved + prompt.layout.n_computed + len(req.output_ids)

    def _need(self, req: Any, prompt: Prompt, *, found: Any) -> admission.Need:
        missing = {w.key: w.segment.length for w in prompt.wanted if w.key not in found}
        own = self._n_built(req, prompt) + self._budgeted_new_tokens(req, prompt)
        return admission.Need(own + sum(missing.values()) + MARGIN_TOKENS, len(missing))

    def _room(self, adder: Any, prompt: Prompt, unpinned: list[Entry]) -> admission.Room:
        """What this pass has left, once the prompt pins its own entries."""
        cache = self._cache
        return admission.Room(
            n_tokens=int(adder.rem_total_tokens) - sum(entry.n_tokens for entry in unpinned),
            n_operators=cache.pool.n_free + cache.index.n_evictable_entries - len(unpinned),
            n_reserved_tokens=self._fills.n_reserved_tokens(but=prompt),
        )

    def _capacity(self) -> admission.Room:
        return admission.Room(self._cache.token_to_kv_pool_allocator.size, self._cache.pool.n_slots)

    # Building the batch.

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
            batch.hypic_plan = ForwardPlan.of(
                batch.reqs,
                prompts,
                captures,
                moves_keys=self._settings.mode.moves_keys,
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
        req.hypic_details = details
        n_filled = prompt.layout.n_moved - prompt.n_reused
        self._cache.metrics.tokens(
            reused=prompt.n_reused,
            recomputed=details["recomputed"],
            filled=n_filled,
            computed=prompt.layout.n_computed - details["recomputed"],
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
        details = getattr(req, "hypic_details", None)
        if details is None:
            return result
        return {**(result or {"device": 0, "host": 0}), "pic": details}
