"""Alerts and dashboards arrive, can be read, and ask for numbers that somebody counts."""

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest

from hypic_engine.contract import metrics as engine_metrics

from ..support.helm import ROOT, refusal, render

CHART = "hypic-operator"
EVERY = ROOT / "charts" / CHART / "ci" / "every-value-values.yaml"
BOARDS = sorted((ROOT / "charts" / CHART / "files" / "dashboards").glob("*.json"))
RUNBOOKS = ROOT / "docs" / "runbooks"
HAS = {"api_versions": ("monitoring.coreos.com/v1",)}
SUFFIX = re.compile(r"_(bucket|count|sum)$")


def _rules(rule: Any = None) -> list[dict[str, Any]]:
    made = rule or render(CHART, **HAS).one("PrometheusRule")
    return [rule for group in made["spec"]["groups"] for rule in group["rules"]]


def _counted() -> set[str]:
    """Every metric that a part of ours defines."""
    found = {metric.name for metric in engine_metrics.ALL}
    for part in ("router", "operator"):
        source = (ROOT / part / f"hypic_{part}" / "metrics.py").read_text()
        words = (
            node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)
        )
        found |= {word for word in words if isinstance(word, str) and word.startswith("hypic_")}
    return found


def _asked(expression: str) -> set[str]:
    """Names of ours in an expression; fails when Prometheus could not read it."""
    plain = expression.replace("$__rate_interval", "5m")
    assert promql_parser.parse(plain) is not None
    without_values = re.sub(r'"[^"]*"', "", plain)
    return {SUFFIX.sub("", name) for name in re.findall(r"hypic_\w+", without_values)}


def _expressions() -> Iterator[tuple[str, str]]:
    for rule in _rules():
        yield rule["alert"], rule["expr"]
    for path in BOARDS:
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                yield f"{path.name}: {panel['title']}", target["expr"]


def test_every_expression_can_be_read_and_asks_for_what_is_counted() -> None:
    counted = _counted()
    assert "hypic_operator_reconcile_seconds" in counted
    for where, expression in _expressions():
        assert _asked(expression) <= counted, where


def test_every_alert_says_how_bad_what_and_what_to_do() -> None:
    for rule in _rules():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
        assert rule["annotations"]["runbook_url"] == f"docs/runbooks/{rule['alert']}.md"
        assert "namespace=" not in rule["expr"]


def test_every_reason_that_an_alert_waits_for_is_one_that_the_operator_gives() -> None:
    core = ROOT / "operator" / "hypic_operator" / "core"
    given = "".join(path.read_text() for path in core.rglob("*.py"))
    waited_for = [
        word
        for rule in _rules()
        for words in re.findall(r'(?:reason|kind|type)=~?"([^"]+)"', rule["expr"])
        for word in words.split("|")
    ]
    assert len(waited_for) >= 5
    assert all(f'"{word}"' in given for word in waited_for)


def test_every_alert_has_a_page_and_every_page_an_alert() -> None:
    alerts = {rule["alert"] for rule in _rules()}
    pages = {path.stem for path in RUNBOOKS.glob("Hypic*.md")}
    assert alerts == pages
    for alert in alerts:
        assert (RUNBOOKS / f"{alert}.md").read_text().startswith(f"# {alert}\n")


def test_labels_limits_and_runbooks_are_the_users() -> None:
    rendered = render(CHART, EVERY)
    rule = rendered.one("PrometheusRule")
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    assert rendered.one("ServiceMonitor")["metadata"]["labels"]["release"] == "prometheus"
    by_name = {item["alert"]: item for item in _rules(rule)}
    first = by_name["HypicFirstTokenSlow"]
    assert first["expr"].endswith("> 2")
    assert by_name["HypicTokensSlow"]["expr"].endswith("> 0.1")
    address = "https://runbooks.example.test/hypic/HypicFirstTokenSlow.md"
    assert first["annotations"]["runbook_url"] == address


def test_the_alert_for_the_operator_looks_where_it_is_counted() -> None:
    rendered = render(CHART, **HAS)
    (service,) = (item for item in rendered.of("Service") if "metrics" in item["metadata"]["name"])
    (down,) = (rule for rule in _rules() if rule["alert"] == "HypicOperatorDown")
    assert f'job="{service["metadata"]["name"]}"' in down["expr"]
    selector = rendered.one("ServiceMonitor")["spec"]["selector"]["matchLabels"]
    assert selector.items() <= service["metadata"]["labels"].items()


@pytest.mark.parametrize(
    ("create", "has", "made"),
    [("auto", True, 1), ("auto", False, 0), ("always", False, 1), ("never", True, 0)],
)
def test_kinds_of_the_prometheus_operator_come_where_they_can_be_read(
    create: str, has: bool, made: int
) -> None:
    asked = {"monitoring__rules__create": create, "monitoring__serviceMonitor__create": create}
    rendered = render(CHART, **asked, **(HAS if has else {}))
    assert len(rendered.of("PrometheusRule")) == len(rendered.of("ServiceMonitor")) == made


def _sources(node: Any) -> Iterator[Any]:
    if isinstance(node, dict):
        if "datasource" in node:
            yield node["datasource"]
        for value in node.values():
            yield from _sources(value)
    elif isinstance(node, list):
        for value in node:
            yield from _sources(value)


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_a_dashboard_asks_the_chosen_data_source(path: Any) -> None:
    board = json.loads(path.read_text())
    sources = list(_sources(board))
    assert sources
    assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)
    variables = {item["name"]: item["type"] for item in board["templating"]["list"]}
    assert variables["datasource"] == "datasource"
    assert "__inputs" not in board


def test_dashboards_have_names_of_their_own_and_the_label_that_grafana_looks_for() -> None:
    boards = [json.loads(path.read_text()) for path in BOARDS]
    assert len({board["uid"] for board in boards}) == len(boards) == 3
    maps = render(CHART).of("ConfigMap")
    assert len(maps) == len(boards)
    for made in maps:
        assert made["metadata"]["labels"]["grafana_dashboard"] == "1"
        ((name, text),) = made["data"].items()
        assert name.endswith(".json")
        assert json.loads(text) in boards
    assert render(CHART, monitoring__dashboards__create=False).of("ConfigMap") == []


def test_no_two_panels_overlap() -> None:
    for path in BOARDS:
        places = [panel["gridPos"] for panel in json.loads(path.read_text())["panels"]]
        corners = {(place["x"], place["y"]) for place in places}
        assert len(corners) == len(places)
        assert all(place["x"] + place["w"] <= 24 for place in places)


def test_a_limit_that_is_no_time_is_refused() -> None:
    said = refusal(CHART, monitoring__rules__firstTokenSeconds=0)
    assert "/monitoring/rules/firstTokenSeconds" in said
