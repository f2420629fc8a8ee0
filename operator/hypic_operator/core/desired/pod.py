"""What every pod we make has in common: the restricted Pod Security Standard, and argument texts.

Knows neither engine nor router.
"""

from collections.abc import Mapping
from typing import Any

from .. import names
from ..api import HypicCluster, Scheduling
from ..difference import Manifest

USER_ID = 65_532
GRACE_BEYOND_DRAIN_S = 30


def security() -> dict[str, Any]:
    """Security context of a pod."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER_ID,
        "runAsGroup": USER_ID,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> dict[str, Any]:
    """Security context of a container."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def scheduling(template: Scheduling, selector: Mapping[str, str]) -> dict[str, Any]:
    """Fields of a pod's spec that users give; what they leave out is empty.

    Args:
        template: what they gave.
        selector: pods that a spread constraint counts when it does not say which.
    """
    return {
        "nodeSelector": dict(template.node_selector),
        "tolerations": list(template.tolerations),
        "affinity": template.affinity,
        "topologySpreadConstraints": [
            {"labelSelector": {"matchLabels": dict(selector)}, **constraint}
            for constraint in template.topology_spread_constraints
        ],
        "priorityClassName": template.priority_class_name,
        "imagePullSecrets": list(template.image_pull_secrets),
    }


def metadata(template: Scheduling, labels: Mapping[str, str]) -> dict[str, Any]:
    """Metadata of a pod: ours, and what users add."""
    found: dict[str, Any] = {"labels": {**template.labels, **labels}}
    if template.annotations:
        found["annotations"] = dict(template.annotations)
    return found


def grace_s(cluster: HypicCluster) -> int:
    """Seconds from the request to stop until the pod is killed."""
    return cluster.spec.drain.timeout_seconds + GRACE_BEYOND_DRAIN_S


def literal(text: str) -> str:
    """An argument that the kubelet hands on as it is, without expanding ``$(NAME)``."""
    return text.replace("$", "$$")


def http_probe(path: str, port: str, *, period_s: int, failures: int, timeout_s: int) -> Manifest:
    """A probe by GET."""
    return {
        "httpGet": {"path": path, "port": port},
        "periodSeconds": period_s,
        "failureThreshold": failures,
        "timeoutSeconds": timeout_s,
    }


def budget(cluster: HypicCluster, name: str, component: names.Component) -> Manifest:
    """A disruption budget that never blocks for good: one pod may always go, broken ones too."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": names.metadata(cluster, name, component),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": names.selector(cluster, component)},
        },
    }
