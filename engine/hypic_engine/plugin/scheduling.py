"""Hooks on SGLang's scheduler: hold a prompt until its segments are there, then let it prefill.

Decides through `core.admission`; moves no tensor (`forward`) and keeps no entry (`cache`).
"""

from array import array
from collections.abc import Callable
from typing import Any

import torch
from sglang.srt.managers.schedule_policy import CLIP_MAX_NEW_TOKENS, AddReqResult
from sglang.srt.mem_cache.common import alloc_req_slots, alloc_token_slots
from sglang.srt.utils.common import flatten_arrays_to_pinned_cpu, is_pin_memory_available

from ..core import admission
from ..core.index import Pins
from ..core.layout import cacheable
from .cache import SegmentCache
from .fills import Fills
from .plan import ForwardPlan
from .requests import Capture, Prompt
from .settings import Settings


def _new_tokens(request: Any) -> int:
    left = request.sampling_params.max_new_tokens - len(request.output_ids)
    return int(min(max(left, 0), CLIP_MAX_NEW_TOKENS))


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
        self._cache.on_fill_end = self._fills.ended

    def describe_engine(self) -> dict[str, Any]:
        """Sizes for ``/pic/info``, and how long the scheduler has been silent. Any thread."""
        if self._scheduler is None:
            return {"silent_s": float("inf")}
        index, pool = self._cache.index, self._cache.pool
        return {
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
        """Around ``Scheduler._add_request_to_queue``: refuse what could never fit."""
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

    # Leaving the queue.

    def admit(
        self, original: Callable[..., Any], adder: Any, req: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Around ``PrefillAdder.add_one_req``: hold, or count the moved copies and go on."""
        prompt = self._cache.prompt_of(req)
        if prompt is None:
            return original(adder, req, *args, **kwargs)
        if not self._ready(req, prompt):
            return AddReqResult.CONTINUE
        moved = prompt.layout.n_moved
        needed = req.extend_input_len + moved + _new_tokens(req) + adder.page_size
        if needed >= adder.rem_total_tokens:
            busy = adder.can_run_list or (adder.running_batch and adder.running_batch.reqs)
            return AddReqResult.NO_TOKEN if busy else AddReqResult.CONTINUE
        n_before = len(adder.can_run_list)
        outcome = original(adder, req, *args, **kwargs)
        if len(adder.can_run_list) > n_before:
            adder.rem_total_token_offset += moved
            adder.cur_rem_token_offset += moved
            self._fills.admitted(prompt)
        return outcome

    def _ready(self, req: Any, prompt: Prompt) -> bool:
        found = [i for i in range(len(prompt.wanted)) if self._cache.entry(prompt, i)]
        if prompt.found is None:
            prompt.found = frozenset(prompt.wanted[i].key for i in found)
        if prompt.pins is None:
            need = self._need(req, prompt, found=found)
            if admission.verdict(need, self._room(prompt, found)) is admission.Verdict.WAIT:
                return False
            prompt.pins = Pins(self._cache.index)
            prompt.reserved_tokens = need.n_tokens
            self._fills.wait(req, prompt)
        for i in found:
            entry = self._cache.entry(prompt, i)
            if entry is not None:
                prompt.pins.add(entry)
                self._cache.alias(entry, prompt.wanted[i].digest)
        if len(found) < len(prompt.wanted):
            self._fills.submit(req, prompt)
            return False
        return self._cache.take_entries(prompt)

    def _need(self, req: Any, prompt: Prompt, *, found: Any) -> admission.Need:
        here = {prompt.wanted[i].key for i in found}
        missing = {w.key: w.segment.length for w in prompt.wanted if w.key not in here}
        own = prompt.layout.n_moved + prompt.layout.n_computed + _new_tokens(req) + 1
        return admission.Need(own + sum(missing.values()) + len(missing), len(missing))

    def _room(self, prompt: Prompt, found: list[int]) -> admission.Room:
        cache = self._cache
        own = {entry.key: entry for i in found if (entry := cache.entry(prompt, i))}
        unpinned = [entry for entry in own.values() if not entry.n_pins]
        available = cache.token_to_kv_pool_allocator.available_size()
        return admission.Room(
            n_tokens=available
            + cache.index.n_evictable_tokens
            - sum(entry.n_tokens for entry in unpinned),
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
        if not ordinary or hasattr(req, "hypic_capture") or req.input_embeds is not None:
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
            req.hypic_capture = Capture(wanted, n_seam, operator)

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
