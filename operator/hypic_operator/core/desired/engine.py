"""The engines' StatefulSet of one revision, their headless Service and disruption budget.

Does not know other revisions; `plan` decides which of them stay.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from .. import difference, names
from ..api import HypicCluster
from ..difference import Manifest
from ..observed import Observed
from ..refusals import Policy
from . import pod

MODEL_VOLUME = "model"
LOAD_WITHIN_S = 3_600
_PROBE_PERIOD_S = 3
_NOTICED_S = 3


def revision(cluster: HypicCluster) -> str:
    """Digits that stand for everything in the spec that changes what an engine does.

    Only what differs from the defaults counts, and nothing that the operator decides: a later
    operator, with more fields and other templates, gives the same spec the same revision.
    """
    spec = cluster.spec
    inputs = spec.model_dump(include={"model", "pic"}, exclude_defaults=True, mode="json")
    prefill = spec.prefill.model_dump(exclude={"replicas"}, exclude_defaults=True, mode="json")
    digits = difference.fingerprint({**inputs, "prefill": prefill})
    return digits[: names.REVISION_DIGITS]


def image(cluster: HypicCluster, policy: Policy, observed: Observed) -> str:
    """Image of the engines: the user's, else what this revision runs already, else the default.

    So an operator with another default leaves running engines alone.
    """
    wanted = revision(cluster)
    running = (item.image for item in observed.sets() if item.revision == wanted)
    return cluster.spec.prefill.template.engine.image or next(running, "") or policy.engine_image


def arguments(cluster: HypicCluster) -> list[str]:
    """Arguments of ``sglang.launch_server``, the user's last."""
    pic, name = cluster.spec.pic, cluster.spec.model.name
    return [
        "--model-path",
        f"/models/{name}",
        "--served-model-name",
        name,
        "--host",
        "0.0.0.0",  # noqa: S104  the pod's own address
        "--port",
        str(names.ENGINE_PORT),
        "--tp-size",
        str(cluster.spec.prefill.tensor_parallel),
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
        *cluster.spec.prefill.template.engine.extra_args,
    ]


def service(cluster: HypicCluster) -> Manifest:
    """Stable names for the engines, ready or not."""
    port = {"name": "http", "port": names.ENGINE_PORT, "targetPort": "http", "protocol": "TCP"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names.metadata(cluster, names.engines(cluster), "prefill"),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": names.selector(cluster, "prefill"),
            "ports": [port],
        },
    }


def stateful_set(cluster: HypicCluster, policy: Policy, *, image: str) -> Manifest:
    """The engines of the revision that the spec asks for."""
    digits = revision(cluster)
    ours = {names.LABEL_ROLE: names.ROLE_BOTH, names.LABEL_REVISION: digits}
    metadata = names.metadata(cluster, names.engine_set(cluster, digits), "prefill")
    template = cluster.spec.prefill.template
    labels = {**template.labels, **names.labels(cluster, "prefill"), **ours}
    pod_metadata: dict[str, Any] = {"labels": labels}
    if template.annotations:
        pod_metadata["annotations"] = dict(template.annotations)
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {**metadata, "labels": {**metadata["labels"], **ours}},
        "spec": {
            "serviceName": names.engines(cluster),
            "replicas": cluster.spec.prefill.replicas,
            "podManagementPolicy": "Parallel",
            # A change of behaviour is another set; whatever else changes waits for the next pod.
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": {**names.selector(cluster, "prefill"), **ours}},
            "template": {
                "metadata": pod_metadata,
                "spec": _pod_spec(cluster, policy, image),
            },
        },
    }


def budget(cluster: HypicCluster) -> Manifest:
    """How many engines may be taken away at once, over all revisions."""
    return pod.budget(cluster, names.engines(cluster), "prefill")


def _pod_spec(cluster: HypicCluster, policy: Policy, image: str) -> dict[str, Any]:
    template = cluster.spec.prefill.template
    ours = [
        _model_volume(cluster),
        {"name": "tmp", "emptyDir": {}},
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
    ]
    optional = {
        "nodeSelector": dict(template.node_selector),
        "tolerations": list(template.tolerations),
        "affinity": template.affinity,
        "topologySpreadConstraints": [
            {"labelSelector": {"matchLabels": names.selector(cluster, "prefill")}, **constraint}
            for constraint in template.topology_spread_constraints
        ],
        "priorityClassName": template.priority_class_name,
        "imagePullSecrets": list(template.image_pull_secrets),
        "runtimeClassName": template.runtime_class_name,
    }
    return {
        "serviceAccountName": names.engine_account(cluster),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": pod.grace_s(cluster),
        "securityContext": pod.security(),
        "containers": [_container(cluster, policy, image)],
        "volumes": _joined(ours, template.volumes, "name"),
        **{field: value for field, value in optional.items() if value},
    }


def _model_volume(cluster: HypicCluster) -> dict[str, Any]:
    source = cluster.spec.model.source
    if source.host_path is not None:
        return {
            "name": MODEL_VOLUME,
            "hostPath": {"path": source.host_path.path, "type": "Directory"},
        }
    claim = source.pvc.claim_name if source.pvc is not None else ""
    return {
        "name": MODEL_VOLUME,
        "persistentVolumeClaim": {"claimName": claim, "readOnly": True},
    }


def _container(cluster: HypicCluster, policy: Policy, image: str) -> dict[str, Any]:
    engine = cluster.spec.prefill.template.engine
    env = {
        # The probe must not queue behind real requests: /health tells liveness, not generation.
        "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "false",
        # The root file system is read-only, and the image may know no user of this id.
        "HOME": "/tmp",  # noqa: S108
        "USER": "hypic",
        "PYTHONUNBUFFERED": "1",
    }
    mounts = [
        _model_mount(cluster),
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108
        {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108
    ]
    listed = [{"name": name, "value": value} for name, value in env.items()]
    return {
        "name": "engine",
        "image": image,
        "imagePullPolicy": engine.image_pull_policy or policy.pull_policy,
        "command": ["python3", "-m", "sglang.launch_server"],
        "args": arguments(cluster),
        "env": _joined(listed, engine.env, "name"),
        "ports": [{"name": "http", "containerPort": names.ENGINE_PORT, "protocol": "TCP"}],
        **_probes(),
        # Routers need a moment to see that the pod is going before it stops taking requests.
        "lifecycle": {"preStop": {"sleep": {"seconds": _NOTICED_S}}},
        "resources": _resources(cluster),
        "securityContext": pod.container_security(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": _joined(mounts, engine.volume_mounts, "mountPath"),
    }


def _model_mount(cluster: HypicCluster) -> dict[str, Any]:
    model = cluster.spec.model
    mount = {"name": MODEL_VOLUME, "mountPath": f"/models/{model.name}", "readOnly": True}
    path = model.source.pvc.path.strip("/") if model.source.pvc is not None else ""
    return {**mount, "subPath": path} if path else mount


def _probes() -> dict[str, Manifest]:
    loads = LOAD_WITHIN_S // _PROBE_PERIOD_S
    return {
        "startupProbe": pod.http_probe(
            "/pic/ready", "http", period_s=_PROBE_PERIOD_S, failures=loads, timeout_s=3
        ),
        "readinessProbe": pod.http_probe("/pic/ready", "http", period_s=5, failures=3, timeout_s=5),
        "livenessProbe": pod.http_probe("/health", "http", period_s=10, failures=30, timeout_s=10),
    }


def _resources(cluster: HypicCluster) -> Mapping[str, Any]:
    given = cluster.spec.prefill.template.engine.resources
    if given is not None:
        return given
    return {"limits": {"nvidia.com/gpu": str(cluster.spec.prefill.tensor_parallel)}}


def _joined(
    ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]], key: str
) -> list[Mapping[str, Any]]:
    """Ours with theirs, which win where the key is the same."""
    joined = {item[key]: item for item in ours} | {item[key]: item for item in theirs}
    return list(joined.values())
