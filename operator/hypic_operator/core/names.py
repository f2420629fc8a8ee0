"""Names, labels and owner references of everything that is made for a HypicCluster.

Knows no manifests. `tests/contract` holds this module to what router and charts expect.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Literal

from .api import HypicCluster, RoleName

GROUP = "serving.hypic.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "HypicCluster"
PLURAL = "hypicclusters"
ROLE_KIND = "HypicRole"
ROLE_PLURAL = "hypicroles"
FIELD_MANAGER = "hypic-operator"
# Held in a namespace by the operator that was installed for it.
SCOPE_LEASE = "hypic-operator-scope"

LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
LABEL_COMPONENT = "app.kubernetes.io/component"
LABEL_CLUSTER = f"{GROUP}/cluster"
LABEL_ROLE = f"{GROUP}/role"
LABEL_REVISION = f"{GROUP}/revision"
ANNOTATION_APPLIED = f"{GROUP}/applied"
ANNOTATION_COPIED = f"{GROUP}/copied-replicas"
ANNOTATION_DRAIN = f"{GROUP}/drain"

ROLE_BOTH = "both"
ENGINE_PORT = 30_000
BOOTSTRAP_PORT = 8_998
FRONT_PORT = 8_080
METRICS_PORT = 9_090
SERVICE_PORT = 80

Component = Literal["prefill", "decode", "router"]

# A StatefulSet's pods carry the label controller-revision-hash, `<set>-<ten characters>`. With
# 63 for a label, `-prefill-` for the longest role and a revision, this is what a name may have.
LABEL_LIMIT = 63
REVISION_DIGITS = 8
BASE_LIMIT = LABEL_LIMIT - len("-0123456789") - len("-prefill-") - REVISION_DIGITS
_HASH_DIGITS = 8
_PLAIN = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")


def base(cluster: str) -> str:
    """What the names of all children begin with.

    The cluster's own name where that can be a Service's name and leaves room for every suffix;
    else its beginning and a hash of the whole, so that names alike in the beginning stay apart.
    """
    if len(cluster) <= BASE_LIMIT and _PLAIN.fullmatch(cluster):
        return cluster
    digest = hashlib.sha256(cluster.encode()).hexdigest()[:_HASH_DIGITS]
    slug = re.sub(r"[^a-z0-9]+", "-", cluster)
    slug = slug if slug[:1].isalpha() else f"hypic-{slug}"
    return f"{slug[: BASE_LIMIT - _HASH_DIGITS - 1].strip('-')}-{digest}"


def service(cluster: HypicCluster) -> str:
    """Service and Deployment of the router."""
    return base(cluster.metadata.name)


def engines(cluster: HypicCluster, role: RoleName) -> str:
    """HypicRole, headless Service and disruption budget of a role's engines."""
    return f"{base(cluster.metadata.name)}-{role}"


def role_label(cluster: HypicCluster, role: RoleName) -> str:
    """What a role's engines do: one part of each request, or both where there is one role."""
    return ROLE_BOTH if cluster.spec.decode is None else role


def engine_set(cluster: HypicCluster, role: RoleName, revision: str) -> str:
    """The StatefulSet of one role and revision."""
    return f"{base(cluster.metadata.name)}-{role_label(cluster, role)}-{revision}"


def engine_account(cluster: HypicCluster) -> str:
    """ServiceAccount of the engines."""
    return f"{base(cluster.metadata.name)}-engine"


def router_access(cluster: HypicCluster) -> str:
    """ServiceAccount, Role, RoleBinding and disruption budget of the router."""
    return f"{base(cluster.metadata.name)}-router"


def folder(repo: str, revision: str) -> str:
    """Where a download lies inside its cache."""
    return f"{repo}--{revision}".replace("/", "--")


def url(cluster: HypicCluster) -> str:
    """Where requests go, inside the Kubernetes cluster."""
    return f"http://{service(cluster)}.{cluster.metadata.namespace}.svc:{SERVICE_PORT}"


def labels(cluster: HypicCluster, component: Component) -> dict[str, str]:
    """Labels of every child."""
    return {
        "app.kubernetes.io/name": "hypic",
        "app.kubernetes.io/instance": cluster.metadata.name,
        LABEL_COMPONENT: component,
        LABEL_MANAGED_BY: FIELD_MANAGER,
        LABEL_CLUSTER: cluster.metadata.name,
    }


def selector(cluster: HypicCluster, component: Component) -> dict[str, str]:
    """Labels by which the pods of a component are found, whatever their revision."""
    return {LABEL_CLUSTER: cluster.metadata.name, LABEL_COMPONENT: component}


def owner(cluster: HypicCluster) -> dict[str, Any]:
    """The owner reference that lets Kubernetes collect a child, operator or not."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": cluster.metadata.name,
        "uid": cluster.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def metadata(cluster: HypicCluster, name: str, component: Component) -> dict[str, Any]:
    """Metadata of a child."""
    return {
        "name": name,
        "namespace": cluster.metadata.namespace,
        "labels": labels(cluster, component),
        "ownerReferences": [owner(cluster)],
    }


def owner_of(labels_of_child: Mapping[str, str]) -> str | None:
    """Name of the HypicCluster that a child's labels name."""
    return labels_of_child.get(LABEL_CLUSTER)
