"""What clients are told of their prompts and counters of all: where the tokens came from.

Hooks on what leaves the scheduler. Decides nothing.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...contract.details import Details
from ..prompts import Prompt
from .fills import Fills
from .metrics import Metrics


class Answers:
    """One scheduler's hooks on its output; attached when the scheduler exists."""

    def __init__(self) -> None:
        self._metrics: Metrics

    def attach(self, metrics: Metrics) -> None:
        """Know what counts."""
        self._metrics = metrics

    def note(self, req: Any, prompt: Prompt) -> None:
        """A prompt takes segments from the cache; its prefill begins."""
        details = prompt.details()
        req.cached_tokens = req.cached_tokens_device = details.reused
        req.hypic_details, req.hypic_assembles_since = details, time.monotonic()
        self._metrics.segments(hit=details.hit, filled=details.filled, in_place=details.in_place)
        self._metrics.tokens(
            reused=details.reused,
            recomputed=details.recomputed,
            filled=prompt.layout.n_moved - details.reused,
            computed=prompt.layout.n_computed - details.recomputed,
        )

    def note_plain(self, req: Any, *, n_in_place: int) -> None:
        """A prompt takes nothing but what the prefix tree has of it.

        Args:
            req: SGLang's request, whose prefix is matched.
            n_in_place: its segments, all computed with what comes before them.
        """
        n_prefix = len(req.prefix_indices)
        req.hypic_details = Details(
            found=n_prefix, reused=n_prefix, radix=n_prefix, in_place=n_in_place
        )
        self._metrics.segments(in_place=n_in_place)
        self._metrics.tokens(radix=n_prefix, computed=req.extend_input_len)

    # Hooks.

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
        if details is not None:
            req.hypic_pic = self._measured(req, details).to_json()
            req.hypic_details = None
        told = getattr(req, "hypic_pic", None)
        return result if told is None else {**(result or {}), "pic": told}

    def _measured(self, req: Any, details: Details) -> Details:
        """With the time to the first token, where the prompt was assembled."""
        since: float | None = getattr(req, "hypic_assembles_since", None)
        if since is None:
            return details
        seconds = time.monotonic() - since
        self._metrics.assembled(seconds)
        return replace(details, assemble_ms=round(1e3 * seconds, 3))
