"""Objects beside engines and routers: who reaches them, who counts them, who scales them."""

from collections.abc import Sequence
from typing import Any

import pytest

from hypic_operator.core.api import HypicCluster
from hypic_operator.core.desired import engine, entrance, monitors, network, router, scaler
from hypic_operator.core.difference import Manifest
from hypic_operator.core.observed import Observed
from hypic_operator.core.refusals import Policy

from ...support import resources

AT_HOME = Policy("r", "e", operator_namespace="hypic-system")
PROMETHEUS = {"app.kubernetes.io/name": "prometheus"}
PAIR = resources.cluster(decode={})


def _labels(cluster: HypicCluster) -> dict[str, dict[str, str]]:
    """Labels of each component's pods."""
    made = {"router": router.deployment(cluster, resources.POLICY)}
    for name in cluster.spec.roles:
        made[name] = engine.stateful_set(cluster, name, resources.POLICY, image="e", replicas=1)
    return {name: item["spec"]["template"]["metadata"]["labels"] for name, item in made.items()}


def _selects(selector: Manifest, labels: dict[str, str]) -> bool:
    for label, value in selector.get("matchLabels", {}).items():
        if labels.get(label) != value:
            return False
    return all(
        labels.get(term["key"]) in term["values"] for term in selector.get("matchExpressions", ())
    )


def _let_in(policy: Manifest, labels: dict[str, str]) -> set[str]:
    """Ports, or `all`, that a pod of the same namespace with these labels reaches."""
    found = set()
    for rule in policy["spec"]["ingress"]:
        peers = [peer for peer in rule.get("from", ()) if "namespaceSelector" not in peer]
        if "from" not in rule or any(_selects(peer["podSelector"], labels) for peer in peers):
            found |= {port["port"] for port in rule.get("ports", ())} or {"all"}
    return found


def test_engines_are_reached_by_routers_and_peers_and_nobody_else() -> None:
    engines, _ = network.children(PAIR, AT_HOME)
    labels = _labels(PAIR)
    for name in PAIR.spec.roles:
        assert _selects(engines["spec"]["podSelector"], labels[name])
        assert _let_in(engines, labels[name]) == {"all"}  # transfers use any port
    assert not _selects(engines["spec"]["podSelector"], labels["router"])
    assert _let_in(engines, labels["router"]) == {"http"}
    assert _let_in(engines, {"app": "somebody"}) == set()
    others = _labels(resources.cluster("other"))
    assert _let_in(engines, others["router"]) == _let_in(engines, others["prefill"]) == set()


def test_anybody_asks_a_router_and_few_read_its_numbers() -> None:
    _, routers = network.children(PAIR, AT_HOME)
    assert _selects(routers["spec"]["podSelector"], _labels(PAIR)["router"])
    assert _let_in(routers, {"app": "somebody"}) == {"http"}


def _peers(policy: Manifest, port: str) -> Sequence[Manifest]:
    rules = (rule for rule in policy["spec"]["ingress"] if "ports" in rule)
    (rule,) = (rule for rule in rules if rule["ports"][0]["port"] == port)
    found: Sequence[Manifest] = rule["from"]
    return found


@pytest.mark.parametrize(("home", "where"), [(AT_HOME, "hypic-system"), (resources.POLICY, None)])
def test_the_operator_and_prometheus_are_let_in(home: Policy, where: str | None) -> None:
    engines, routers = network.children(PAIR, home)
    named = {"matchLabels": {"kubernetes.io/metadata.name": where}} if where else {}
    for peers in (_peers(engines, "http"), _peers(routers, "metrics")):
        by_pod = {str(peer["podSelector"]): peer for peer in peers}
        ours = {"app.kubernetes.io/part-of": "hypic", "app.kubernetes.io/component": "operator"}
        assert by_pod[str({"matchLabels": ours})]["namespaceSelector"] == named
        assert by_pod[str({"matchLabels": PROMETHEUS})]["namespaceSelector"] == {}


def test_others_are_let_in_where_the_spec_says_so() -> None:
    peer = {"podSelector": {"matchLabels": {"app": "bench"}}}
    cluster = resources.cluster(networkPolicy={"enginesFrom": [peer], "metricsFrom": []})
    engines, routers = network.children(cluster, AT_HOME)
    assert _let_in(engines, {"app": "bench"}) == {"http"}
    assert str(PROMETHEUS) not in str((engines, routers))
    assert network.children(resources.cluster(networkPolicy={"enabled": False}), AT_HOME) == ()


@pytest.mark.parametrize(
    ("when", "served", "made"),
    [
        ("Auto", True, 2),
        ("Auto", False, 0),
        ("Always", False, 2),
        ("Never", True, 0),
    ],
)
def test_pod_monitors_come_where_they_can_be_read(when: str, served: bool, made: int) -> None:
    observed = Observed(served=frozenset({"PodMonitor"} if served else ()))
    cluster = resources.cluster(monitoring={"podMonitor": when})
    assert len(monitors.children(cluster, observed)) == made


def test_every_pod_is_counted_once_and_on_the_port_of_its_metrics() -> None:
    cluster = resources.cluster(
        decode={}, monitoring={"podMonitor": "Always", "labels": {"release": "prometheus"}}
    )
    found = monitors.children(cluster, Observed())
    ports = {
        name: [
            item["spec"]["podMetricsEndpoints"][0]["port"]
            for item in found
            if _selects(item["spec"]["selector"], labels)
        ]
        for name, labels in _labels(cluster).items()
    }
    assert ports == {"router": ["metrics"], "prefill": ["http"], "decode": ["http"]}
    assert all(item["metadata"]["labels"]["release"] == "prometheus" for item in found)


def test_counted_numbers_say_of_which_cluster_and_role() -> None:
    always = resources.cluster(monitoring={"podMonitor": "Always"})
    for item in monitors.children(always, Observed()):
        (endpoint,) = item["spec"]["podMetricsEndpoints"]
        assert {rule["targetLabel"] for rule in endpoint["relabelings"]} >= {"cluster", "role"}


METRIC = {"type": "Pods", "pods": {"metric": {"name": "hypic_engine_queued"}}}


def test_metrics_make_an_autoscaler_of_the_role() -> None:
    scaling: dict[str, Any] = {"min": 2, "max": 5, "metrics": [METRIC], "behavior": {"scaleUp": {}}}
    cluster = resources.cluster(prefill={"scaling": scaling}, decode={})
    (made,) = scaler.autoscalers(cluster, "prefill")
    assert made["spec"]["scaleTargetRef"]["kind"] == "HypicRole"
    assert made["spec"]["scaleTargetRef"]["name"] == "demo-prefill"
    assert (made["spec"]["minReplicas"], made["spec"]["maxReplicas"]) == (2, 5)
    assert made["spec"]["metrics"] == [METRIC]
    assert made["spec"]["behavior"] == {"scaleUp": {}}
    assert scaler.autoscalers(cluster, "decode") == ()


def test_bounds_alone_make_no_autoscaler() -> None:
    assert scaler.autoscalers(resources.cluster(prefill={"scaling": {"max": 2}}), "prefill") == ()


def test_an_ingress_leads_to_the_front_door() -> None:
    ingress = {
        "host": "llm.example.test",
        "className": "nginx",
        "tlsSecretName": "tls",
        "annotations": {"nginx.ingress.kubernetes.io/proxy-buffering": "off"},
    }
    (made,) = entrance.children(resources.cluster(router={"ingress": ingress}))
    (rule,) = made["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    assert path["backend"]["service"] == {"name": "demo", "port": {"name": "http"}}
    assert rule["host"] == "llm.example.test"
    assert made["spec"]["ingressClassName"] == "nginx"
    assert made["spec"]["tls"] == [{"hosts": ["llm.example.test"], "secretName": "tls"}]
    assert made["metadata"]["annotations"] == ingress["annotations"]
    (bare,) = entrance.children(resources.cluster(router={"ingress": {"host": "a"}}))
    assert bare["spec"].keys() == {"rules"}


def test_a_route_leads_to_the_front_door_and_ends_no_stream() -> None:
    gateway = {"parentRefs": [{"name": "public", "namespace": "infra"}], "hostnames": ["a.test"]}
    (made,) = entrance.children(resources.cluster(router={"gateway": gateway}))
    (rule,) = made["spec"]["rules"]
    assert rule["backendRefs"] == [{"name": "demo", "port": 80}]
    assert rule["timeouts"] == {"request": "0s"}
    assert made["spec"]["parentRefs"] == gateway["parentRefs"]
    assert made["spec"]["hostnames"] == ["a.test"]


def test_without_either_the_front_door_is_inside_only() -> None:
    assert entrance.children(resources.cluster()) == ()


def test_a_router_goes_where_its_template_says_llmkube_793() -> None:
    template = {
        "labels": {"team": "a", "serving.hypic.dev/cluster": "other"},
        "nodeSelector": {"pool": "cpu"},
        "tolerations": [{"operator": "Exists"}],
        "resources": {"requests": {"cpu": "2"}},
        "imagePullSecrets": [{"name": "routers"}],
    }
    cluster = resources.cluster(router={"template": template})
    pod = router.deployment(cluster, resources.POLICY)["spec"]["template"]
    assert pod["metadata"]["labels"]["team"] == "a"
    assert pod["metadata"]["labels"]["serving.hypic.dev/cluster"] == "demo"
    assert pod["spec"]["nodeSelector"] == {"pool": "cpu"}
    assert pod["spec"]["tolerations"] == [{"operator": "Exists"}]
    assert pod["spec"]["imagePullSecrets"] == [{"name": "routers"}]
    assert pod["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert pod["spec"]["topologySpreadConstraints"]
