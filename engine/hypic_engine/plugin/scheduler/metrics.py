"""Prometheus metrics of the scheduler process, as the contract names them.

Made only when SGLang's own metrics are on. Counts what it is told; decides nothing.
"""

from typing import Any

from ...contract import metrics as names


def _made(metric: names.Metric) -> Any:
    """The metric, with a series for each value of its label, so that none begins in mid-life."""
    from prometheus_client import Counter, Gauge, Histogram  # noqa: PLC0415 - after SGLang set its folder

    labels = [metric.label] if metric.label else []
    if metric.kind == "gauge":
        made: Any = Gauge(metric.name, metric.says, labels, multiprocess_mode="mostrecent")
    else:
        kinds = {"counter": Counter, "histogram": Histogram}
        made = kinds[metric.kind](metric.name.removesuffix("_total"), metric.says, labels)
    series = [made.labels(value) for value in metric.values] or [made]
    if metric.kind == "gauge":  # several processes' gauges are not shown before they are set
        for one in series:
            one.set(0)
    return made


class Metrics:
    """Counters and gauges of one scheduler rank, or nothing when disabled."""

    def __init__(self, *, enabled: bool) -> None:
        self._made = {metric.name: _made(metric) for metric in names.ALL} if enabled else {}

    def _of(self, metric: names.Metric, label: str = "") -> Any:
        made = self._made[metric.name]
        return made.labels(label) if label else made

    def tokens(self, **by_source: int) -> None:
        """Count prompt tokens by source."""
        self._count(names.PROMPT_TOKENS_TOTAL, by_source)

    def segments(self, **by_result: int) -> None:
        """Count segments of prompts by what became of them."""
        self._count(names.PROMPT_SEGMENTS_TOTAL, by_result)

    def _count(self, metric: names.Metric, amounts: dict[str, int]) -> None:
        if not self._made:
            return
        for value, amount in amounts.items():
            self._of(metric, value).inc(amount)

    def evicted(self, n_segments: int, *, reason: str) -> None:
        """Count evicted segments."""
        self._count(names.EVICTIONS_TOTAL, {reason: n_segments})

    def filled(self, seconds: float) -> None:
        """Observe one fill."""
        if self._made:
            self._of(names.FILL_SECONDS).observe(seconds)

    def assembled(self, seconds: float) -> None:
        """Observe one assembly."""
        if self._made:
            self._of(names.ASSEMBLE_SECONDS).observe(seconds)

    def sizes(self, index: Any, pool: Any) -> None:
        """Note what is held."""
        if not self._made:
            return
        operators = len(index) * pool.slot_bytes
        self._of(names.SEGMENTS, "device").set(len(index))
        self._of(names.BYTES, "operators").set(operators)
        self._of(names.BYTES, "kv").set(index.n_bytes - operators)

    def load(
        self, *, n_running: int, n_queued: int, n_short_of_memory: int, kv_used_ratio: float
    ) -> None:
        """Note how busy the scheduler is."""
        if not self._made:
            return
        self._of(names.RUNNING).set(n_running)
        self._of(names.QUEUED).set(n_queued)
        self._of(names.WAITING_FOR_MEMORY).set(n_short_of_memory)
        self._of(names.KV_USED_RATIO).set(kv_used_ratio)


class Rest:
    """Has SGLang's own gauges show at once that nothing is left to do.

    It sets them with batches, and when idle every 30 s, which never comes while it sleeps.
    """

    def __init__(self) -> None:
        self._is_told = True

    def received(self, result: object, scheduler: object, messages: Any) -> None:
        """After ``Scheduler.process_input_requests``: there may be work."""
        self._is_told = self._is_told and not messages

    def settle(self, scheduler: Any) -> None:
        """Before ``Scheduler.on_idle``: the first time that nothing is left."""
        reporter = scheduler.metrics_reporter
        if self._is_told or not reporter.current_scheduler_metrics_enabled:
            return
        if scheduler.is_fully_idle():
            self._is_told = True
            reporter.metrics_collector.last_log_time = 0.0
