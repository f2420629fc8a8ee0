"""How Prometheus finds the pods: PodMonitors, where its operator is installed.

Knows no alerts; those are the chart's, for all clusters at once.
"""

from typing import Any

from .. import names
from ..api import HypicCluster
from ..difference import Manifest
from ..observed import Observed

KIND = "PodMonitor"
_LABELS = {
    "cluster": "__meta_kubernetes_pod_label_serving_hypic_dev_cluster",
    "role": "__meta_kubernetes_pod_label_serving_hypic_dev_role",
    "revision": "__meta_kubernetes_pod_label_serving_hypic_dev_revision",
}


def children(cluster: HypicCluster, observed: Observed) -> tuple[Manifest, ...]:
    """One for the engines and one for the routers, which answer on different ports."""
    when = cluster.spec.monitoring.pod_monitor
    if when == "Never" or (when == "Auto" and KIND not in observed.served):
        return ()
    engines = {"key": names.LABEL_COMPONENT, "operator": "In", "values": ["prefill", "decode"]}
    selector = {
        "matchLabels": {names.LABEL_CLUSTER: cluster.metadata.name},
        "matchExpressions": [engines],
    }
    routers = {"matchLabels": names.selector(cluster, "router")}
    account, access = names.engine_account(cluster), names.router_access(cluster)
    return (
        _monitor(cluster, names.metadata(cluster, account, "prefill"), selector, "http"),
        _monitor(cluster, names.metadata(cluster, access, "router"), routers, "metrics"),
    )


def _monitor(
    cluster: HypicCluster, metadata: dict[str, Any], pods: dict[str, Any], port: str
) -> Manifest:
    labels = {**cluster.spec.monitoring.labels, **metadata["labels"]}
    relabelings = [{"sourceLabels": [at], "targetLabel": name} for name, at in _LABELS.items()]
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": KIND,
        "metadata": {**metadata, "labels": labels},
        "spec": {
            "selector": pods,
            "podMetricsEndpoints": [{"port": port, "path": "/metrics", "relabelings": relabelings}],
        },
    }
