"""How the front door is reached from outside: an Ingress or a route of Gateway API.

Does not know which controller carries it out.
"""

from collections.abc import Mapping
from typing import Any

from .. import names
from ..api import HypicCluster
from ..difference import Manifest

GATEWAY_GROUP = "gateway.networking.k8s.io"


def children(cluster: HypicCluster) -> tuple[Manifest, ...]:
    """The entrance that the spec asks for, if any."""
    router = cluster.spec.router
    if router.ingress is not None:
        return (_ingress(cluster),)
    return (_route(cluster),) if router.gateway is not None else ()


def _ingress(cluster: HypicCluster) -> Manifest:
    given = cluster.spec.router.ingress
    assert given is not None
    service = {"name": names.service(cluster), "port": {"name": "http"}}
    path = {"path": "/", "pathType": "Prefix", "backend": {"service": service}}
    spec: dict[str, Any] = {"rules": [{"host": given.host, "http": {"paths": [path]}}]}
    if given.class_name:
        spec["ingressClassName"] = given.class_name
    if given.tls_secret_name:
        spec["tls"] = [{"hosts": [given.host], "secretName": given.tls_secret_name}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": _metadata(cluster, given.annotations),
        "spec": spec,
    }


def _route(cluster: HypicCluster) -> Manifest:
    given = cluster.spec.router.gateway
    assert given is not None
    rule = {
        "backendRefs": [{"name": names.service(cluster), "port": names.SERVICE_PORT}],
        # A stream may take longer than what gateways allow a request by default.
        "timeouts": {"request": "0s"},
    }
    spec: dict[str, Any] = {"parentRefs": list(given.parent_refs), "rules": [rule]}
    if given.hostnames:
        spec["hostnames"] = list(given.hostnames)
    return {
        "apiVersion": f"{GATEWAY_GROUP}/v1",
        "kind": "HTTPRoute",
        "metadata": _metadata(cluster, given.annotations),
        "spec": spec,
    }


def _metadata(cluster: HypicCluster, annotations: Mapping[str, str]) -> dict[str, Any]:
    metadata = names.metadata(cluster, names.service(cluster), "router")
    return {**metadata, "annotations": dict(annotations)} if annotations else metadata
