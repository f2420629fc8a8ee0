"""Who the pods are and what they may do: engines nothing, routers read the pods of their namespace.

Does not hold the operator's own rights; those are the chart's.
"""

from .. import names
from ..api import HypicCluster
from ..difference import Manifest

_RBAC = "rbac.authorization.k8s.io"


def children(cluster: HypicCluster) -> tuple[Manifest, ...]:
    """ServiceAccounts, and the router's Role with its binding."""
    return (
        _account(cluster, names.engine_account(cluster), "prefill"),
        _account(cluster, names.router_access(cluster), "router"),
        _role(cluster),
        _binding(cluster),
    )


def _account(cluster: HypicCluster, name: str, component: names.Component) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": names.metadata(cluster, name, component),
        "automountServiceAccountToken": False,
    }


def _role(cluster: HypicCluster) -> Manifest:
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "Role",
        "metadata": names.metadata(cluster, names.router_access(cluster), "router"),
        "rules": [rule],
    }


def _binding(cluster: HypicCluster) -> Manifest:
    name = names.router_access(cluster)
    namespace = cluster.metadata.namespace
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": names.metadata(cluster, name, "router"),
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
