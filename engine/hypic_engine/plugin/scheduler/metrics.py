"""Prometheus metrics of the scheduler process, under the names of the contract.

Made only when SGLang's own metrics are on. Counts what it is told; decides nothing.
"""

from typing import Any

from ...contract import metrics as names


class Metrics:
    """Counters and gauges of one scheduler rank, or nothing when disabled."""

    def __init__(self, *, enabled: bool) -> None:
        self._on = enabled
        if not enabled:
            return
        from prometheus_client import Counter, Gauge, Histogram  # noqa: PLC0415 - after SGLang set its folder

        self._tokens = Counter(
            names.PROMPT_TOKENS_TOTAL.removesuffix("_total"),
            "Prompt tokens by where they came from",
            ["source"],
        )
        self._evictions = Counter(
            names.EVICTIONS_TOTAL.removesuffix("_total"), "Evicted segments", ["reason"]
        )
        self._segments = Gauge(
            names.SEGMENTS, "Segments held", ["tier"], multiprocess_mode="mostrecent"
        )
        self._bytes = Gauge(
            names.BYTES, "Bytes in use by segments", ["pool"], multiprocess_mode="mostrecent"
        )
        self._fill = Histogram(names.FILL_SECONDS, "Seconds from asking for a fill to its entry")
        self._running = Gauge(names.RUNNING, "Running requests", multiprocess_mode="mostrecent")
        self._queued = Gauge(names.QUEUED, "Waiting requests", multiprocess_mode="mostrecent")
        self._kv = Gauge(names.KV_USED_RATIO, "Used share of KV", multiprocess_mode="mostrecent")

    def tokens(self, **by_source: int) -> None:
        """Count prompt tokens by source."""
        if not self._on:
            return
        for source, n_tokens in by_source.items():
            if n_tokens:
                self._tokens.labels(source=source).inc(n_tokens)

    def evicted(self, n_segments: int, *, reason: str) -> None:
        """Count evicted segments."""
        if self._on and n_segments:
            self._evictions.labels(reason=reason).inc(n_segments)

    def filled(self, seconds: float) -> None:
        """Observe one fill."""
        if self._on:
            self._fill.observe(seconds)

    def sizes(self, index: Any, pool: Any) -> None:
        """Note what is held."""
        if not self._on:
            return
        self._segments.labels(tier="device").set(len(index))
        self._bytes.labels(pool="operators").set(len(index) * pool.slot_bytes)
        self._bytes.labels(pool="kv").set(index.n_bytes - len(index) * pool.slot_bytes)

    def load(self, *, n_running: int, n_queued: int, kv_used_ratio: float) -> None:
        """Note how busy the scheduler is."""
        if not self._on:
            return
        self._running.set(n_running)
        self._queued.set(n_queued)
        self._kv.set(kv_used_ratio)
