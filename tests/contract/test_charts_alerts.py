"""Each alert fires for what it is about, and none where all is well: read by Prometheus itself."""

import pytest

from ..support.helm import render
from ..support.promtool import fault

HAS = {"api_versions": ("monitoring.coreos.com/v1",)}
AT = 'namespace="ai", cluster="qwen"'
UP = 'up{job="demo-hypic-operator-metrics"}'  # its Service, by the name of the tests' release
STEPS = 26 * 120  # of half a minute: a day and two hours


def rises(by):
    """A counter that rises with each step."""
    return f"0+{by}x{STEPS}"


def stands(at):
    """A number that stays."""
    return f"{at}x{STEPS}"


def falls(before, after):
    """A counter that rises by another number in the last two hours."""
    n_late = 2 * 120
    n_early = STEPS - n_late
    return f"0+{before}x{n_early} {before * n_early}+{after}x{n_late}"


def took(seconds, name, labels=""):
    """A histogram of observations that took so long, or as long as the next lower bound."""
    comma = ", " if labels else ""
    buckets = {
        f'{name}_bucket{{{labels}{comma}le="{bound}"}}': rises(9 if bound >= seconds else 0)
        for bound in (0.05, 0.5, 1, 60)
    }
    every = {f'{name}_bucket{{{labels}{comma}le="+Inf"}}': rises(9)}
    return buckets | every | {f"{name}_count{{{labels}}}": rises(9)}


LOOKS = "hypic_operator_reconcile_seconds"
CONDITION = f"hypic_operator_condition{{{AT}"
TOKENS = "hypic_engine_prompt_tokens_total"
WELL = {
    UP: stands(1),
    f'{LOOKS}_count{{result="ok"}}': rises(9),
    **took(0.5, LOOKS),
    'hypic_operator_decision_total{kind="DrainTimedOut"}': stands(0),
    f'{CONDITION}, type="PrefillReady", status="True", reason="EnginesReady"}}': stands(1),
    f'{CONDITION}, type="ScalingReady", status="True", reason="Scaling"}}': stands(1),
    f'hypic_router_engines{{{AT}, state="ready"}}': stands(2),
    f'hypic_router_requests_total{{{AT}, code="200"}}': rises(99),
    f'hypic_router_requests_total{{{AT}, code="503"}}': rises(1),
    **took(0.5, "hypic_router_ttft_seconds", AT),
    **took(0.05, "hypic_router_inter_token_seconds", AT),
    f"hypic_router_queued_requests{{{AT}}}": f"0 5 0x{STEPS}",
    f'{TOKENS}{{{AT}, source="reused"}}': rises(50),
    f'{TOKENS}{{{AT}, source="computed"}}': rises(50),
    f"hypic_engine_evictions_total{{{AT}}}": rises(1),
    f"hypic_engine_fill_seconds_count{{{AT}}}": rises(9),
    f"hypic_router_resyncs_total{{{AT}}}": stands(3),
}


ILL = {
    "HypicOperatorDown": {UP: stands(0)},
    "HypicReconcileErrors": {f'{LOOKS}_count{{result="error"}}': rises(9)},
    "HypicReconcileSlow": took(60, LOOKS),
    "HypicDrainStuck": {'hypic_operator_decision_total{kind="DrainTimedOut"}': rises(1)},
    "HypicLoadStuck": {
        f'{CONDITION}, type="DecodeReady", status="False", reason="Loading"}}': stands(1)
    },
    "HypicScalingBlocked": {
        f'{CONDITION}, type="ScalingReady", status="False", reason="NoMetrics"}}': stands(1)
    },
    "HypicNoReadyEngine": {f'hypic_router_engines{{{AT}, state="ready"}}': stands(0)},
    "HypicRouterErrors": {f'hypic_router_requests_total{{{AT}, code="503"}}': rises(9)},
    "HypicFirstTokenSlow": took(60, "hypic_router_ttft_seconds", AT),
    "HypicTokensSlow": took(1, "hypic_router_inter_token_seconds", AT),
    "HypicRequestsWait": {f"hypic_router_queued_requests{{{AT}}}": stands(1)},
    "HypicHitRatioFell": {f'{TOKENS}{{{AT}, source="reused"}}': falls(50, 1)},
    "HypicEvicting": {f"hypic_engine_evictions_total{{{AT}}}": rises(9)},
    "HypicDirectoryStale": {f"hypic_router_resyncs_total{{{AT}}}": rises(1)},
}


@pytest.fixture(scope="module")
def groups():
    return render("hypic-operator", **HAS).one("PrometheusRule")["spec"]["groups"]


def fires(*names):
    """What is asked for: exactly these fire, after two hours or, where it takes one, a day."""
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in names]
    firing = 'count by (alertname) (ALERTS{alertstate="firing"})'
    when = "25h58m" if "HypicHitRatioFell" in names else "1h58m"
    return {"expr": firing, "eval_time": when, "exp_samples": samples}


def test_nothing_fires_where_all_is_well(groups):
    assert fault(WELL, groups=groups, queries=[fires()]) == ""


def test_a_cluster_that_sleeps_has_no_engine_and_no_alert(groups):
    asleep = {f'{CONDITION}, type="Ready", status="True", reason="Asleep"}}': stands(1)}
    none = ILL["HypicNoReadyEngine"]
    assert fault(WELL | none | asleep, groups=groups, queries=[fires()]) == ""


def test_every_alert_has_a_case(groups):
    assert {rule["alert"] for group in groups for rule in group["rules"]} == ILL.keys()


@pytest.mark.parametrize("alert", ILL)
def test_it_fires_alone_for_what_it_is_about(alert, groups):
    assert fault(WELL | ILL[alert], groups=groups, queries=[fires(alert)]) == ""
