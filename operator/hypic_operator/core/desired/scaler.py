"""The HorizontalPodAutoscaler of a role whose spec says by which metrics it scales.

Does not choose a number; the autoscaler does, and writes it into the HypicRole.
"""

from typing import Any

from .. import names
from ..api import HypicCluster, RoleName
from ..difference import Manifest


def autoscalers(cluster: HypicCluster, name: RoleName) -> tuple[Manifest, ...]:
    """The role's autoscaler, if it is to have one."""
    scaling = cluster.spec.roles[name].scaling
    if scaling is None or not scaling.metrics:
        return ()
    target = names.engines(cluster, name)
    spec: dict[str, Any] = {
        "scaleTargetRef": {
            "apiVersion": names.API_VERSION,
            "kind": names.ROLE_KIND,
            "name": target,
        },
        "minReplicas": scaling.min,
        "maxReplicas": scaling.max,
        "metrics": list(scaling.metrics),
    }
    if scaling.behavior is not None:
        spec["behavior"] = scaling.behavior
    return (
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": names.metadata(cluster, target, name),
            "spec": spec,
        },
    )
