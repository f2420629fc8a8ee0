"""Where the API server keeps each kind of object that is made, read or watched.

Sends nothing.
"""

from collections.abc import Mapping

from .core import names

# Path of each kind that is made, in the order in which they are listed.
KINDS: Mapping[str, tuple[str, str]] = {
    names.ROLE_KIND: (f"apis/{names.API_VERSION}", names.ROLE_PLURAL),
    "StatefulSet": ("apis/apps/v1", "statefulsets"),
    "Deployment": ("apis/apps/v1", "deployments"),
    "Service": ("api/v1", "services"),
    "ServiceAccount": ("api/v1", "serviceaccounts"),
    "Role": ("apis/rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": ("apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "PodDisruptionBudget": ("apis/policy/v1", "poddisruptionbudgets"),
    "NetworkPolicy": ("apis/networking.k8s.io/v1", "networkpolicies"),
    "Ingress": ("apis/networking.k8s.io/v1", "ingresses"),
    "HorizontalPodAutoscaler": ("apis/autoscaling/v2", "horizontalpodautoscalers"),
}
# The same for kinds that not every API server has.
OPTIONAL: Mapping[str, tuple[str, str]] = {
    "HTTPRoute": ("apis/gateway.networking.k8s.io/v1", "httproutes"),
    "PodMonitor": ("apis/monitoring.coreos.com/v1", "podmonitors"),
}
ALL = {**KINDS, **OPTIONAL}
OURS = (f"apis/{names.API_VERSION}", names.PLURAL)
PODS = ("api/v1", "pods")
EVENTS = ("api/v1", "events")


def path(place: tuple[str, str], namespace: str, name: str = "") -> str:
    """The path of an object, or of all of its kind in a namespace."""
    prefix, plural = place
    return f"/{prefix}/namespaces/{namespace}/{plural}" + (f"/{name}" if name else "")
