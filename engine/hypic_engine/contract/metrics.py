"""Names of the engine's Prometheus metrics, read by router, operator, alerts and dashboards."""

PROMPT_TOKENS_TOTAL = "hypic_engine_prompt_tokens_total"
RUNNING = "hypic_engine_running"
QUEUED = "hypic_engine_queued"
KV_USED_RATIO = "hypic_engine_kv_used_ratio"
SEGMENTS = "hypic_engine_segments"
BYTES = "hypic_engine_bytes"
EVICTIONS_TOTAL = "hypic_engine_evictions_total"
FILL_SECONDS = "hypic_engine_fill_seconds"
ASSEMBLE_SECONDS = "hypic_engine_assemble_seconds"

SOURCES = ("reused", "recomputed", "filled", "radix", "computed")
