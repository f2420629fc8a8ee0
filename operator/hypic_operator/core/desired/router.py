"""The router's Service, Deployment and disruption budget.

Does not know how the router chooses; it is told by its flags.
"""

from typing import Any

from .. import names, serving
from ..api import HypicCluster
from ..difference import Manifest
from ..refusals import Policy
from . import pod

_NOTICED_S = 5
# Waking takes as long as loading the model.
_HELD_S = 900
_KEYS = "/etc/hypic/api-keys"
_RESOURCES = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}


def arguments(cluster: HypicCluster, policy: Policy) -> list[str]:
    """Arguments of ``hypic-router``."""
    spec = cluster.spec
    return [
        "--port",
        str(names.FRONT_PORT),
        "--metrics-port",
        str(names.METRICS_PORT),
        "--namespace",
        cluster.metadata.namespace,
        "--cluster",
        cluster.metadata.name,
        "--model",
        spec.model.name,
        f"--separator={pod.literal(spec.pic.separator)}",
        "--max-segments",
        str(spec.pic.max_segments),
        "--policy",
        spec.router.policy,
        "--shutdown-s",
        str(spec.drain.timeout_seconds),
        *(["--hold-s", str(_HELD_S)] if spec.may_sleep else []),
        *_keys(cluster, policy),
    ]


def _keys(cluster: HypicCluster, policy: Policy) -> list[str]:
    """Whom the routers admit: who has a key of the Secret, and the operator, for its tokens."""
    if cluster.spec.router.api_keys_secret_ref is None:
        return []
    own = serving.front_key(policy.secret, cluster.metadata.uid)
    digest = ["--api-key-digest", serving.digest(own)] if policy.secret else []
    return ["--api-keys", _KEYS, *digest]


def service(cluster: HypicCluster) -> Manifest:
    """The front door."""
    port = {"name": "http", "port": names.SERVICE_PORT, "targetPort": "http", "protocol": "TCP"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names.metadata(cluster, names.service(cluster), "router"),
        "spec": {"selector": names.selector(cluster, "router"), "ports": [port]},
    }


def deployment(cluster: HypicCluster, policy: Policy) -> Manifest:
    """The routers; a new one is ready before an old one goes."""
    selector = names.selector(cluster, "router")
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": names.metadata(cluster, names.service(cluster), "router"),
        "spec": {
            "replicas": cluster.spec.router.replicas,
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1},
            },
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": pod.metadata(
                    cluster.spec.router.template, names.labels(cluster, "router")
                ),
                "spec": _pod_spec(cluster, policy),
            },
        },
    }


def budget(cluster: HypicCluster) -> Manifest:
    """How many routers may be taken away at once."""
    return pod.budget(cluster, names.router_access(cluster), "router")


def _pod_spec(cluster: HypicCluster, policy: Policy) -> dict[str, Any]:
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": names.selector(cluster, "router")},
    }
    template = cluster.spec.router.template
    given = pod.scheduling(template, names.selector(cluster, "router"))
    # Both images are usually in one registry.
    engines = list(cluster.spec.prefill.template.image_pull_secrets)
    ours = {"topologySpreadConstraints": [spread], "imagePullSecrets": engines}
    chosen = ours | {field: value for field, value in given.items() if value}
    return {
        "serviceAccountName": names.router_access(cluster),
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": pod.grace_s(cluster),
        "securityContext": pod.security(),
        "containers": [_container(cluster, policy)],
        "volumes": _volumes(cluster),
        **{field: value for field, value in chosen.items() if value},
    }


def _container(cluster: HypicCluster, policy: Policy) -> dict[str, Any]:
    given = cluster.spec.router.template.resources
    return {
        "name": "router",
        "image": policy.router_image,
        "imagePullPolicy": policy.pull_policy,
        "command": ["hypic-router"],
        "args": arguments(cluster, policy),
        "ports": [
            {"name": "http", "containerPort": names.FRONT_PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": names.METRICS_PORT, "protocol": "TCP"},
        ],
        # Not whether an engine is ready: without one, clients are to get the router's own words.
        "readinessProbe": pod.http_probe("/accepting", "http", period_s=2, failures=2, timeout_s=2),
        "livenessProbe": pod.http_probe("/health", "http", period_s=10, failures=6, timeout_s=5),
        # Endpoints and proxies need a moment to forget a pod before it stops listening.
        "lifecycle": {"preStop": {"sleep": {"seconds": _NOTICED_S}}},
        "resources": _RESOURCES if given is None else given,
        "securityContext": pod.container_security(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": _mounts(cluster),
    }


def _volumes(cluster: HypicCluster) -> list[Manifest]:
    keys = cluster.spec.router.api_keys_secret_ref
    mounted = [] if keys is None else [{"name": "api-keys", "secret": {"secretName": keys.name}}]
    return [{"name": "tmp", "emptyDir": {}}, *mounted]


def _mounts(cluster: HypicCluster) -> list[Manifest]:
    keys = cluster.spec.router.api_keys_secret_ref
    mounted = [] if keys is None else [{"name": "api-keys", "mountPath": _KEYS, "readOnly": True}]
    return [{"name": "tmp", "mountPath": "/tmp"}, *mounted]  # noqa: S108
