"""Names of the engine's Prometheus metrics, with what they count and by which label.

Once published, others depend on them: scalers, dashboards and alerts. Counts nothing.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of one engine.

    Attributes:
        name: in full, with its unit.
        kind: Prometheus' type.
        says: what it counts or measures, in one line.
        label: its only label, empty for none.
        values: all values of the label.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    says: str
    label: str = ""
    values: tuple[str, ...] = ()


PROMPT_TOKENS_TOTAL = Metric(
    "hypic_engine_prompt_tokens_total",
    "counter",
    "prompt tokens by where they came from",
    "source",
    ("reused", "recomputed", "filled", "radix", "computed"),
)
PROMPT_SEGMENTS_TOTAL = Metric(
    "hypic_engine_prompt_segments_total",
    "counter",
    "segments of prompts by what became of them",
    "result",
    ("hit", "filled", "in_place"),
)
EVICTIONS_TOTAL = Metric(
    "hypic_engine_evictions_total",
    "counter",
    "evicted segments",
    "reason",
    ("on_probation", "worth_less", "nothing_else", "copies", "operators", "weights", "asked"),
)
RUNNING = Metric("hypic_engine_running", "gauge", "requests that produce tokens")
QUEUED = Metric("hypic_engine_queued", "gauge", "requests that wait, fills left out")
WAITING_FOR_MEMORY = Metric(
    "hypic_engine_waiting_for_memory", "gauge", "of these, how many wait because memory is short"
)
KV_USED_RATIO = Metric(
    "hypic_engine_kv_used_ratio", "gauge", "share of key/value memory that could not be freed"
)
SEGMENTS = Metric("hypic_engine_segments", "gauge", "segments held", "tier", ("device",))
BYTES = Metric(
    "hypic_engine_bytes", "gauge", "bytes that segments occupy", "pool", ("kv", "operators")
)
FILL_SECONDS = Metric(
    "hypic_engine_fill_seconds", "histogram", "from asking for a fill to its entry"
)
ASSEMBLE_SECONDS = Metric(
    "hypic_engine_assemble_seconds", "histogram", "from a prompt's prefill to its first token"
)

ALL = (
    PROMPT_TOKENS_TOTAL,
    PROMPT_SEGMENTS_TOTAL,
    EVICTIONS_TOTAL,
    RUNNING,
    QUEUED,
    WAITING_FOR_MEMORY,
    KV_USED_RATIO,
    SEGMENTS,
    BYTES,
    FILL_SECONDS,
    ASSEMBLE_SECONDS,
)
