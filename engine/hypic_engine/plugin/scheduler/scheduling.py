"""Hooks on SGLang's scheduler: hold a prompt until its segments are there, then let it prefill.

Decides through `core.admission`; builds no batch (`batching`) and keeps no entry (`cache`).
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from sglang.srt.managers.schedule_policy import CLIP_MAX_NEW_TOKENS, AddReqResult

from ...core import admission
from ...core.entry import Entry
from ...core.index import Pins
from ..prompts import Prompt
from ..settings import Settings
from .batching import Batching
from .cache import SegmentCache
from .fills import Fills
from .keeping import Keeping
from .store import forward_stream

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


class Scheduling:
    """One scheduler's hooks; made at start, attached when the scheduler exists."""

    def __init__(self, settings: Settings, batching: Batching) -> None:
        self._settings = settings
        self._batching = batching
        self._scheduler: Any = None
        self._cache: SegmentCache
        self._fills: Fills
        self._keeping: Keeping

    def attach(self, result: object, scheduler: Any, *args: object, **kwargs: object) -> None:
        """After ``Scheduler.__init__``."""
        self._scheduler = scheduler
        self._cache = scheduler.tree_cache
        self._fills = Fills(scheduler, self._cache, self._settings)
        self._batching.attach(self._cache, self._fills)
        self._cache.store.on_capture_end = self._fills.ended
        self._cache.store.forward_stream = partial(forward_stream, scheduler)
        self._cache.before_reset = self._fills.abandon
        self._keeping = Keeping(self._cache)
        self._keeping.listen(scheduler)

    def describe_engine(self) -> dict[str, Any]:
        """Sizes for ``/pic/info``, and how long the scheduler has been silent. Any thread."""
        if self._scheduler is None:
            return {"started": False}
        index, pool = self._cache.store.index, self._cache.store.pool
        return {
            "started": True,
            "computing": bool(self._scheduler.cur_batch),
            "silent_s": round(self._fills.silent_s, 1),
            "running": self._fills.n_running,
            "queued": self._fills.n_queued,
            "transfers": self._fills.n_transfers,
            "segments": len(index),
            "tokens": index.n_tokens,
            "bytes": index.n_bytes,
            "pinned_segments": index.n_pinned_entries,
            "pins": self._keeping.describe(),
            "copied_tokens": self._cache.copies.n_tokens,
            "prefix_tokens": self._cache.total_size() - index.n_tokens,
            "operator_slots": {"total": pool.slots.n, "free": pool.slots.n_free},
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

    def limit(self, original: Callable[..., bool], scheduler: Any, req: Any) -> bool:
        """Around ``Scheduler._abort_on_queued_limit``, which would count fills."""
        if scheduler.max_queued_requests is None:
            return False
        with self._fills.left_out():
            return original(scheduler, req)

    def sweep(self, result: object, scheduler: Any, *args: object) -> None:
        """After ``Scheduler.process_input_requests``, once a turn: forget what was aborted."""
        self._cache.queue_waits = False
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
        outcome = self._admit(original, adder, req, *args, **kwargs)
        if adder.can_run_list[-1:] != [req]:
            self._cache.forget_match(req)
        return outcome

    def _admit(
        self, original: Callable[..., Any], adder: Any, req: Any, *args: Any, **kwargs: Any
    ) -> Any:
        prompt = self._cache.prompt_of(req)
        holds = prompt is not None and prompt.pins is not None
        if self._cache.queue_waits and not (holds or Fills.is_fill(req)):
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
        moved, n_new = self._cache.copies.n_to_move(prompt), self._budgeted_new_tokens(req, prompt)
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
                self._cache.queue_waits = self._fills.memory_is_short = True
                return False
            prompt.pins = Pins(self._cache.store.index)
            prompt.reserved_tokens = need.n_tokens
            self._fills.wait(req, prompt)
        elif room.n_tokens < 0:  # this pass has promised to others what would be pinned
            return False
        for wanted in prompt.wanted:
            if wanted.key in found:
                self._fills.pin(prompt, found[wanted.key])
                self._cache.store.alias(found[wanted.key], wanted.digest)
        if not self._cache.take_entries(prompt):
            prompt.waits(now_s=time.monotonic())
            self._fills.submit(req, prompt)
            return False
        prompt.is_complete(now_s=time.monotonic())
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
        index, pool = self._cache.store.index, self._cache.store.pool
        return admission.Room(
            n_tokens=int(adder.rem_total_tokens) - sum(entry.n_tokens for entry in unpinned),
            n_operators=pool.slots.n_free + index.n_evictable_entries - len(unpinned),
            n_reserved_tokens=self._fills.n_reserved_tokens(but=prompt),
        )

    def _capacity(self) -> admission.Room:
        cache = self._cache
        return admission.Room(cache.token_to_kv_pool_allocator.size, cache.store.pool.slots.n)
