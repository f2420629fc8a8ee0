"""What Prometheus finds on a real engine is what the contract and the README promise."""

import re
from pathlib import Path

from hypic_engine.contract import metrics

from ...support.waiting import eventually
from .prompts import documents, joined

README = (Path(__file__).parents[3] / "engine" / "README.md").read_text()
SAMPLE = re.compile(r"^(hypic_engine_\w+?)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
PARTS = re.compile(r"_(bucket|sum|count)$")


def scraped(server) -> dict[tuple[str, str], float]:
    """Samples by name and label value."""
    samples = SAMPLE.findall(server.get("/metrics"))
    return {(name, "".join(re.findall(r'"(.*?)"', label))): float(n) for name, label, n in samples}


def grown(server, before, metric, label="") -> float:
    return scraped(server)[metric.name, label] - before[metric.name, label]


def test_an_engine_publishes_the_contract_s_metrics_and_no_others(engine):
    text = engine.get("/metrics")
    types = dict(re.findall(r"^# TYPE (hypic_engine_\w+) (\w+)$", text, re.MULTILINE))
    assert types == {metric.name: metric.kind for metric in metrics.ALL}
    assert {PARTS.sub("", name) for name, _ in scraped(engine)} == set(types)


def test_every_value_of_a_label_is_there_from_the_start(engine):
    samples = scraped(engine)
    for metric in metrics.ALL:
        labels = {label for name, label in samples if name == metric.name}
        if metric.kind != "histogram":
            assert labels == (set(metric.values) or {""}), metric.name


def test_the_readme_lists_the_same_metrics():
    rows = [line for line in README.splitlines() if line.startswith("| `hypic_engine_")]
    listed = [tuple(cell.strip(" `") for cell in row.split("|")[1:4]) for row in rows]
    assert [(name, kind) for name, kind, _ in listed] == [(m.name, m.kind) for m in metrics.ALL]
    for metric, (_, _, says) in zip(metrics.ALL, listed, strict=True):
        assert metric.says in says
        assert all(value in says for value in metric.values), metric.name


def test_prompt_tokens_are_counted_by_where_they_came_from(engine):
    engine.flush()
    head, body = documents(160, 40, 50)
    before = scraped(engine)
    engine.generate(joined(head, body, "question"))
    engine.generate(joined(head, body, "question"))

    def tokens(source):
        return grown(engine, before, metrics.PROMPT_TOKENS_TOTAL, source)

    interiors = len(head) + len(body) - 16
    assert tokens("filled") == interiors
    assert tokens("reused") == interiors
    assert tokens("recomputed") == 16
    assert tokens("computed") == 2 * len("question") + 16
    assert grown(engine, before, metrics.PROMPT_SEGMENTS_TOTAL, "filled") == 2
    assert grown(engine, before, metrics.PROMPT_SEGMENTS_TOTAL, "hit") == 2


def test_fills_and_assemblies_are_timed(engine):
    engine.flush()
    before = scraped(engine)
    engine.generate(joined(*documents(161, 40, 50), "question"))
    after = scraped(engine)
    for metric, n in ((metrics.FILL_SECONDS, 2), (metrics.ASSEMBLE_SECONDS, 1)):
        count, total = f"{metric.name}_count", f"{metric.name}_sum"
        assert after[count, ""] - before[count, ""] == n
        assert 0 < after[total, ""] - before[total, ""] < 60


def test_what_is_held_is_measured_and_evictions_are_counted(small):
    small.flush()
    before = scraped(small)
    for seed in range(162, 166):
        small.generate(joined(*documents(seed, 200, 200), "question"))
    after = scraped(small)
    assert after[metrics.SEGMENTS.name, "device"] == small.info["segments"]
    pools = [after[metrics.BYTES.name, pool] for pool in metrics.BYTES.values]
    assert sum(pools) == small.info["bytes"]
    reasons = metrics.EVICTIONS_TOTAL.values
    assert sum(grown(small, before, metrics.EVICTIONS_TOTAL, reason) for reason in reasons) > 0
    eventually(lambda: 0 < scraped(small)[metrics.KV_USED_RATIO.name, ""] < 1)
