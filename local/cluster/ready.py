"""Says whether the node is Ready, and now: a condition from before a restart is not enough."""

from datetime import datetime
from typing import Any

from ..settings import Settings
from . import kube
from .core import names

DNS_NAME = "hypic:dns"


def ready_since(node: dict[str, Any] | None, since_s: float) -> bool:
    """Whether a Node object is Ready and its kubelet said so at or after a time.

    Args:
        node: the object; None when it is not there.
        since_s: seconds since the epoch; the kubelet's word carries whole seconds only.
    """
    for condition in (node or {}).get("status", {}).get("conditions", []):
        if condition["type"] == "Ready" and condition["status"] == "True":
            said = datetime.fromisoformat(condition["lastHeartbeatTime"])
            return said.timestamp() >= int(since_s)
    return False


def node_is_ready(settings: Settings, *, since_s: float = 0.0) -> bool:
    """Whether the node is Ready and its kubelet has said so since a time."""
    return ready_since(kube.get(settings, "node", names.NODE_NAME), since_s)


def dns_rights() -> tuple[dict[str, Any], ...]:
    """What CoreDNS may read."""
    rules = [
        {"apiGroups": [""], "resources": ["namespaces", "services"], "verbs": ["list", "watch"]},
        {
            "apiGroups": ["discovery.k8s.io"],
            "resources": ["endpointslices"],
            "verbs": ["list", "watch"],
        },
    ]
    group = "rbac.authorization.k8s.io"
    meta = {"apiVersion": f"{group}/v1", "metadata": {"name": DNS_NAME}}
    return (
        {**meta, "kind": "ClusterRole", "rules": rules},
        {
            **meta,
            "kind": "ClusterRoleBinding",
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": DNS_NAME},
            "subjects": [{"apiGroup": group, "kind": "User", "name": DNS_NAME}],
        },
    )
