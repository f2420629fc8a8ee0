"""The ScaledObject of the examples asks for what is counted, and gets a number at rest."""

import pytest
import yaml

from hypic_engine.contract.metrics import PROMPT_TOKENS_TOTAL
from hypic_operator.core import names

from ..support import resources
from ..support.helm import ROOT
from ..support.promtool import fault

AT = 'namespace="ai", cluster="qwen"'
REST = {
    f'hypic_router_{kind}_requests{{{AT}, pod="{pod}"}}': "0x40"
    for kind in ("running", "queued")
    for pod in ("a", "b")
} | {
    f'{PROMPT_TOKENS_TOTAL.name}{{{AT}, role="prefill", source="{source}"}}': "7x40"
    for source in PROMPT_TOKENS_TOTAL.values
}


@pytest.fixture(scope="module")
def scaled():
    return yaml.safe_load((ROOT / "examples" / "keda.yaml").read_text())["spec"]


def answers(scaled, *values):
    """What Prometheus is to answer to both queries: one number without labels, or nothing."""
    samples = [{"value": value} for value in values]
    queries = (trigger["metadata"]["query"] for trigger in scaled["triggers"])
    return [{"expr": query, "eval_time": "10m", "exp_samples": samples} for query in queries]


def test_it_scales_the_role_of_a_cluster(scaled):
    cluster = resources.cluster("qwen", namespace="ai")
    target = scaled["scaleTargetRef"]
    assert target["apiVersion"] == "serving.hypic.dev/v1alpha1"
    assert (target["kind"], target["name"]) == ("HypicRole", names.engines(cluster, "prefill"))


def test_at_rest_both_queries_give_zero(scaled):
    assert fault(REST, queries=answers(scaled, 0)) == ""


def test_without_data_there_is_no_answer_and_that_is_no_zero(scaled):
    assert fault({}, queries=answers(scaled)) == ""
    assert [trigger["metadata"]["ignoreNullValues"] for trigger in scaled["triggers"]] == [
        "false",
        "false",
    ]


def test_requests_and_tokens_that_no_cache_had_count_and_others_do_not(scaled):
    busy = REST | {
        f'hypic_router_queued_requests{{{AT}, pod="a"}}': "6x40",
        f'{PROMPT_TOKENS_TOTAL.name}{{{AT}, role="prefill", source="computed"}}': "0+300x40",
        f'{PROMPT_TOKENS_TOTAL.name}{{{AT}, role="prefill", source="reused"}}': "0+900x40",
    }
    requests, tokens = answers(scaled, 6)[0], answers(scaled, 10)[1]
    assert fault(busy, queries=[requests, tokens]) == ""
