"""Isolated prefills of missing segments, and the prompts that wait for them.

A fill is an ordinary one-token request of SGLang's that nobody listens to. It belongs to the
prompts that wait for it and ends with the last of them. Level-triggered: `submit` may be called at
every scheduling attempt.
"""

import itertools
import time
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from sglang.srt.managers.schedule_batch import Req
from sglang.srt.sampling.sampling_params import SamplingParams

from ...core.entry import Entry
from ...core.layout import Segment
from ..prompts import Capture, Prompt, Wanted
from ..settings import Settings
from . import sending
from .cache import SegmentCache

LOAD_EVERY_S = 1.0
ID_PREFIX = "hypic-fill-"


@dataclass(slots=True)
class _InFlight:
    request: Any
    capture: Capture
    since: float
    running: bool = False


class Fills:
    """Fills in flight by key, and who waits."""

    def __init__(self, scheduler: Any, cache: SegmentCache, settings: Settings) -> None:
        self._scheduler = scheduler
        self._cache = cache
        self._settings = settings
        self._in_flight: dict[str, _InFlight] = {}
        self._waiting: dict[int, tuple[Any, Prompt]] = {}
        self._numbers = itertools.count()
        self._load_at = 0.0
        self.memory_is_short = False  # seen since load was noted
        self._beat_at = time.monotonic()

    @property
    def silent_s(self) -> float:
        """Seconds since the scheduler's loop last turned."""
        return time.monotonic() - self._beat_at

    @property
    def n_running(self) -> int:
        """Requests that produce tokens."""
        return len(self._scheduler.running_batch.reqs)

    @property
    def n_queued(self) -> int:
        """Requests that wait, fills left out."""
        waiting = sum(not self.is_fill(request) for request in self._scheduler.waiting_queue)
        bootstrapping = self._scheduler.disagg_prefill_bootstrap_queue
        return waiting + (len(bootstrapping.queue) if bootstrapping is not None else 0)

    @property
    def n_transfers(self) -> int:
        """Computed prompts on their way to a decode server."""
        return sum(not self.is_fill(r) for r in self._scheduler.disagg_prefill_inflight_queue or ())

    @staticmethod
    def is_fill(request: Any) -> bool:
        """Whether this is one of ours."""
        return getattr(request, "hypic_fill", False)

    def n_reserved_tokens(self, *, but: Prompt) -> int:
        """What waiting prompts other than this one have reserved."""
        return sum(p.reserved_tokens for _, p in self._waiting.values() if p is not but)

    def wait(self, request: Any, prompt: Prompt) -> None:
        """The prompt holds pins and waits for the rest."""
        self._waiting[id(request)] = (request, prompt)

    @staticmethod
    def pin(prompt: Prompt, entry: Entry) -> None:
        """The prompt holds this entry too; what it reserved for its fill is spent."""
        if prompt.pins is None:
            raise RuntimeError("a prompt reserves before it pins")
        prompt.pins.add(entry)
        if entry.key in prompt.filling:
            prompt.filling.discard(entry.key)
            prompt.reserved_tokens -= entry.n_tokens

    def admitted(self, prompt: Prompt) -> None:
        """The prompt runs: its pins now live until its prefill is over."""
        prompt.admitted = True
        prompt.reserved_tokens = 0
        self._waiting = {k: v for k, v in self._waiting.items() if v[1] is not prompt}

    def submit(self, request: Any, prompt: Prompt) -> None:
        """Ask for every segment that is missing and not yet in flight."""
        for i, wanted in enumerate(prompt.wanted):
            if self._cache.entry(prompt, i) is not None:
                continue
            prompt.filling.add(wanted.key)
            if wanted.key not in self._in_flight:
                self._start(request, wanted)

    def _start(self, waiter: Any, wanted: Wanted) -> None:
        operator = self._cache.store.operator_slot()
        if operator is None:
            return
        length = wanted.segment.length
        sampling = SamplingParams(max_new_tokens=1, temperature=0)
        sampling.normalize(None)
        segment = wanted.segment
        fill = Req(
            f"{ID_PREFIX}{next(self._numbers)}",
            "",
            array("q", waiter.origin_input_ids[segment.start : segment.end]),
            sampling,
            eos_token_ids=self._scheduler.model_config.hf_eos_token_id,
            vocab_size=self._scheduler.model_config.vocab_size,
            extra_key=waiter.extra_key,
            priority=waiter.priority,
            disagg_mode=self._scheduler.disaggregation_mode,
        )
        fill.tokenizer = self._scheduler.tokenizer
        fill.logprob_start_len = -1
        fill.hypic_fill = True
        fill.hypic_prompt = None
        fill.hypic_plain = False
        own = replace(wanted, segment=Segment(0, 0, length))
        seam, epoch = self._settings.seam.n_tokens(length), self._cache.ledger.epoch
        capture = Capture(own, seam, operator, epoch)
        fill.hypic_capture = capture
        if self._settings.role == "prefill":
            sending.prepare(fill)
        self._scheduler.init_req_max_new_tokens(fill)
        self._scheduler.waiting_queue.append(fill)
        fill.time_stats.set_wait_queue_entry_time()
        self._in_flight[wanted.key] = _InFlight(fill, capture, time.monotonic())

    def started(self, requests: Iterable[Any]) -> None:
        """These requests run now."""
        running = {id(request) for request in requests if self.is_fill(request)}
        for flight in self._in_flight.values():
            flight.running |= id(flight.request) in running

    def ended(self, capture: Capture, entry: Entry | None) -> None:
        """A prefill left an entry, or none; whoever waits for it pins it before anyone evicts it.

        It may be a plain prompt's while a fill of the same segment is in flight; that fill is then
        needed by nobody, and `sweep` drops it.
        """
        key = capture.wanted.key
        flight = self._in_flight.get(key)
        if flight is not None and flight.capture is capture:
            del self._in_flight[key]
            if entry is not None:
                self._cache.metrics.filled(time.monotonic() - flight.since)
        if entry is None:
            return
        for _, prompt in self._waiting.values():
            if key in prompt.filling:
                self.pin(prompt, entry)

    def abandon(self) -> None:
        """Every waiting prompt is planned anew, and what is not running yet is not filled."""
        for _, prompt in self._waiting.values():
            prompt.release()
        self._waiting.clear()
        self.sweep()

    @contextmanager
    def left_out(self) -> Iterator[None]:
        """Show SGLang a queue without fills; what it takes out is gone afterwards too."""
        waiting = self._scheduler.waiting_queue
        shown = [request for request in waiting if not self.is_fill(request)]
        self._scheduler.waiting_queue = shown
        try:
            yield
        finally:
            kept = {id(request) for request in shown}
            self._scheduler.waiting_queue = [
                request for request in waiting if self.is_fill(request) or id(request) in kept
            ]

    def sweep(self) -> None:
        """Let go of prompts that left the queue without running, and of fills nobody waits for."""
        if not self._waiting and not self._in_flight:
            return
        queued = {id(request) for request in self._scheduler.waiting_queue}
        for number, (_, prompt) in list(self._waiting.items()):
            if number not in queued:
                del self._waiting[number]
                prompt.release()
        needed = {key for _, prompt in self._waiting.values() for key in prompt.filling}
        for key, flight in list(self._in_flight.items()):
            if flight.running or (key in needed and id(flight.request) in queued):
                continue
            waiting = self._scheduler.waiting_queue
            self._scheduler.waiting_queue = [r for r in waiting if r is not flight.request]
            self._cache.store.discard(flight.capture)

    def beat(self) -> None:
        """Note that the scheduler loop turns, and once in a while how busy it is."""
        self._beat_at = time.monotonic()
        if self._beat_at - self._load_at < LOAD_EVERY_S:
            return
        self._load_at = self._beat_at
        allocator = self._cache.token_to_kv_pool_allocator
        free = allocator.available_size() + self._cache.full_evictable_size()
        self._cache.metrics.load(
            n_running=self.n_running,
            n_queued=self.n_queued,
            n_short_of_memory=self.n_queued if self.memory_is_short else 0,
            kv_used_ratio=1 - free / max(allocator.size, 1),
        )
        self.memory_is_short = False
