"""Who may open a connection to engines and routers.

Does not enforce it: that is the network's job, and some have no policies.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from .. import names
from ..api import HypicCluster
from ..difference import Manifest
from ..refusals import Policy

_OPERATOR = {"app.kubernetes.io/part-of": "hypic", "app.kubernetes.io/component": "operator"}


def children(cluster: HypicCluster, policy: Policy) -> tuple[Manifest, ...]:
    """A policy for the engines and one for the routers, unless the spec wants none."""
    if not cluster.spec.network_policy.enabled:
        return ()
    return _engines(cluster, policy), _routers(cluster, policy)


def _engines(cluster: HypicCluster, policy: Policy) -> Manifest:
    """Engines take requests from routers, and anything from each other: transfers use any port."""
    given = cluster.spec.network_policy
    asking = [
        {"podSelector": {"matchLabels": names.selector(cluster, "router")}},
        _operator(policy),
        *given.metrics_from,
        *given.engines_from,
    ]
    engines = _engine_pods(cluster)
    rules = [_rule(asking, "http"), {"from": [{"podSelector": engines}]}]
    metadata = names.metadata(cluster, names.engine_account(cluster), "prefill")
    return _policy(metadata, engines, rules)


def _routers(cluster: HypicCluster, policy: Policy) -> Manifest:
    """Anybody may ask; numbers are for Prometheus and the operator."""
    counting = [_operator(policy), *cluster.spec.network_policy.metrics_from]
    rules = [_rule([], "http"), _rule(counting, "metrics")]
    metadata = names.metadata(cluster, names.router_access(cluster), "router")
    return _policy(metadata, {"matchLabels": names.selector(cluster, "router")}, rules)


def _policy(
    metadata: Mapping[str, Any], pods: Mapping[str, Any], rules: Sequence[Mapping[str, Any]]
) -> Manifest:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata,
        "spec": {"podSelector": pods, "policyTypes": ["Ingress"], "ingress": list(rules)},
    }


def _rule(peers: Sequence[Mapping[str, Any]], port: str) -> dict[str, Any]:
    ports = [{"port": port, "protocol": "TCP"}]
    return {"from": list(peers), "ports": ports} if peers else {"ports": ports}


def _engine_pods(cluster: HypicCluster) -> dict[str, Any]:
    roles = {"key": names.LABEL_COMPONENT, "operator": "In", "values": ["prefill", "decode"]}
    return {
        "matchLabels": {names.LABEL_CLUSTER: cluster.metadata.name},
        "matchExpressions": [roles],
    }


def _operator(policy: Policy) -> dict[str, Any]:
    home = policy.operator_namespace
    where = {"matchLabels": {"kubernetes.io/metadata.name": home}} if home else {}
    return {"namespaceSelector": where, "podSelector": {"matchLabels": _OPERATOR}}
