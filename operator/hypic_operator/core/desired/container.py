"""The engine's container: its command, environment, mounts, probes and devices.

Does not know the pod around it, nor how many there are.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from .. import names
from ..api import HypicCluster, RoleName
from ..difference import Manifest
from ..refusals import Policy
from . import pod, weights

LOAD_WITHIN_S = 3_600
_PROBE_PERIOD_S = 3


def container(cluster: HypicCluster, name: RoleName, policy: Policy, image: str) -> dict[str, Any]:
    """The container of one role's engines."""
    engine = cluster.spec.roles[name].template.engine
    mounts = [
        weights.mount(cluster),
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108
        {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108
    ]
    return {
        "name": "engine",
        "image": image,
        "imagePullPolicy": engine.image_pull_policy or policy.pull_policy,
        "command": ["python3", "-m", "sglang.launch_server"],
        "args": arguments(cluster, name),
        "env": joined(_environment(cluster), engine.env, "name"),
        "ports": ports(cluster, name, "containerPort"),
        **_probes(),
        **_stop(cluster),
        "resources": _resources(cluster, name),
        "securityContext": pod.container_security(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": joined(mounts, engine.volume_mounts, "mountPath"),
    }


def arguments(cluster: HypicCluster, name: RoleName) -> list[str]:
    """Arguments of ``sglang.launch_server``, the user's last."""
    role, pic, model = cluster.spec.roles[name], cluster.spec.pic, cluster.spec.model.name
    return [
        "--model-path",
        f"/models/{model}",
        "--served-model-name",
        model,
        "--host",
        "0.0.0.0",  # noqa: S104  the pod's own address
        "--port",
        str(names.ENGINE_PORT),
        "--tp-size",
        str(role.tensor_parallel),
        "--enable-metrics",
        "--enable-cache-report",
        "--page-size",
        "1",
        "--pic-enable",
        "--pic-mode",
        pic.mode,
        f"--pic-separator-str={pod.literal(pic.separator)}",
        "--pic-seam",
        pic.seam,
        "--pic-max-segments",
        str(pic.max_segments),
        "--pic-segment-min-tokens",
        str(pic.min_segment_tokens),
        *(["--pic-memory-gib", memory_gib(pic.memory)] if pic.memory else []),
        *_part(cluster, name),
        *role.template.engine.extra_args,
    ]


def ports(cluster: HypicCluster, name: RoleName, key: str) -> list[dict[str, Any]]:
    """Ports with numbers that are known before the engine starts; transfers use random ones."""
    found = {"http": names.ENGINE_PORT}
    if names.role_label(cluster, name) == "prefill":
        found["bootstrap"] = names.BOOTSTRAP_PORT
    return [{"name": port, key: number, "protocol": "TCP"} for port, number in found.items()]


def memory_gib(amount: str) -> str:
    """What the engine's flag takes, for `25%` of what is free or a quantity such as `16Gi`."""
    if amount.endswith("%"):
        return f"{Decimal(amount[:-1]) / 100}x"
    unit = {"Mi": 1024, "Gi": 1}[amount[-2:]]
    return str(Decimal(amount[:-2]) / unit)


def joined(
    ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]], key: str
) -> list[Mapping[str, Any]]:
    """Ours with theirs, which win where the key is the same."""
    by_key = {item[key]: item for item in ours} | {item[key]: item for item in theirs}
    return list(by_key.values())


def _part(cluster: HypicCluster, name: RoleName) -> list[str]:
    """Which part of each request the engine does; a decode server only cuts segments out."""
    match names.role_label(cluster, name):
        case "prefill":
            bootstrap = ["--disaggregation-bootstrap-port", str(names.BOOTSTRAP_PORT)]
            return ["--disaggregation-mode", "prefill", *bootstrap]
        case "decode":
            return ["--disaggregation-mode", "decode"]
        case _:
            return []


def _environment(cluster: HypicCluster) -> list[Mapping[str, Any]]:
    found = {
        # The probe must not queue behind real requests: /health tells liveness, not generation.
        "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "false",
        # The root file system is read-only, and the image may know no user of this id.
        "HOME": "/tmp",  # noqa: S108
        "USER": "hypic",
        "PYTHONUNBUFFERED": "1",
    }
    listed: list[Mapping[str, Any]] = [{"name": n, "value": value} for n, value in found.items()]
    if cluster.spec.decode is None:
        return listed
    address = {"fieldRef": {"fieldPath": "status.podIP"}}
    return [
        *listed,
        # Where the other side of a transfer finds this one.
        {"name": "SGLANG_HOST_IP", "valueFrom": address},
        # Else one broken transfer shuts a decode server out until it registers again.
        {"name": "SGLANG_ENABLE_FAILED_SESSION_PROBE", "value": "true"},
        {"name": "SGLANG_FAILED_SESSION_PROBE_INTERVAL_S", "value": "5"},
    ]


def _probes() -> dict[str, Manifest]:
    loads = LOAD_WITHIN_S // _PROBE_PERIOD_S
    return {
        "startupProbe": pod.http_probe(
            "/pic/ready", "http", period_s=_PROBE_PERIOD_S, failures=loads, timeout_s=3
        ),
        "readinessProbe": pod.http_probe("/pic/ready", "http", period_s=5, failures=3, timeout_s=5),
        "livenessProbe": pod.http_probe("/health", "http", period_s=10, failures=30, timeout_s=10),
    }


def _stop(cluster: HypicCluster) -> dict[str, Manifest]:
    """The engine's own drain, for whoever ends the pod without the operator: an eviction."""
    if not cluster.spec.drain.timeout_seconds:
        return {}
    deadline_s = str(cluster.spec.drain.timeout_seconds)
    command = ["python3", "-m", "hypic_engine.drain", "--deadline-s", deadline_s]
    return {"lifecycle": {"preStop": {"exec": {"command": command}}}}


def _resources(cluster: HypicCluster, name: RoleName) -> Mapping[str, Any]:
    role = cluster.spec.roles[name]
    given = role.template.engine.resources
    if given is not None:
        return given
    return {"limits": {"nvidia.com/gpu": str(role.tensor_parallel)}}
