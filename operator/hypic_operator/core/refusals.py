"""What is wrong with a spec that the schema lets pass, with what to write instead.

Does not know the schema's own limits; what it refuses is told in a condition, never raised.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .api import Fields, HypicCluster, Role, RoleName

# Flags of sglang.launch_server that the operator sets or that would undo what it sets.
OWNED_FLAGS = (
    "--model-path",
    "--model",
    "--served-model-name",
    "--host",
    "--port",
    "--tp-size",
    "--tensor-parallel-size",
    "--enable-metrics",
    "--enable-cache-report",
    "--page-size",
    "--pic-enable",
    "--pic-mode",
    "--pic-separator-str",
    "--pic-seam",
    "--pic-max-segments",
    "--pic-segment-min-tokens",
    "--pic-memory-gib",
    "--disaggregation-mode",
    "--disaggregation-bootstrap-port",
)

# With a key, the engine answers 401 to probes and routers, which send none.
KEY_FLAGS = ("--api-key", "--admin-api-key")

# Kinds of volumes that the restricted Pod Security Standard knows: none of them is a node's.
VOLUMES = frozenset(
    (
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    )
)
_CONDITIONS: Mapping[RoleName, Literal["PrefillReady", "DecodeReady"]] = {
    "prefill": "PrefillReady",
    "decode": "DecodeReady",
}
_INSTEAD = {"model.source.hostPath": "model.source.pvc", "modelCache.node": "modelCache.pvc"}


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator was started with.

    Attributes:
        engine_image: image of engines whose spec names none; empty for none.
        router_image: image of routers.
        pull_policy: when images are pulled, where the spec does not say.
        allow_host_path: whether folders of nodes may be mounted.
        operator_namespace: where the operator runs; empty for unknown.
        secret: of which its keys for front doors are made; empty for none.
    """

    router_image: str
    engine_image: str = ""
    pull_policy: str = "IfNotPresent"
    allow_host_path: bool = False
    operator_namespace: str = ""
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing is changed until the spec is.

    Attributes:
        condition: the condition that tells it.
        reason: CamelCase word.
        message: what is wrong and what to write instead.
    """

    condition: Literal["ModelReady", "PrefillReady", "DecodeReady"]
    reason: str
    message: str


def refusal(cluster: HypicCluster, policy: Policy) -> Refusal | None:
    """The first thing that must be changed in the spec; None when it can be carried out."""
    found = (_role(name, cluster.spec.roles[name], policy) for name in cluster.spec.roles)
    return _model(cluster, policy) or next((one for one in found if one is not None), None)


def _model(cluster: HypicCluster, policy: Policy) -> Refusal | None:
    fields = {
        "model.source.hostPath": cluster.spec.model.source.host_path,
        "modelCache.node": cluster.spec.model_cache.node,
    }
    field = next((field for field, folder in fields.items() if folder is not None), None)
    if field is None or policy.allow_host_path:
        return None
    return Refusal(
        "ModelReady",
        "HostPathNotAllowed",
        f"{field}: this operator does not allow folders of nodes; use a PersistentVolumeClaim and "
        f"{_INSTEAD[field]}, or start the operator with --allow-host-path",
    )


def _role(name: RoleName, role: Role, policy: Policy) -> Refusal | None:
    found = _volumes(role, policy) or _engine(role, policy)
    if found is None:
        return None
    reason, message = found
    condition = _CONDITIONS[name]
    return Refusal(condition, reason, f"{name}.template.{message}")


def _volumes(role: Role, policy: Policy) -> tuple[str, str] | None:
    found = (_volume(volume, policy) for volume in role.template.volumes)
    return next((one for one in found if one is not None), None)


def _volume(volume: Fields, policy: Policy) -> tuple[str, str] | None:
    """What is wrong with a volume: whoever writes a HypicCluster must not get at nodes by it."""
    where, kinds = f"volumes: {volume['name']}", set(volume) - {"name"}
    if "hostPath" in kinds and not policy.allow_host_path:
        words = (
            f"{where} is a hostPath, which this operator does not allow; use a "
            f"persistentVolumeClaim, or start the operator with --allow-host-path"
        )
        return "HostPathNotAllowed", words
    others = kinds - VOLUMES - {"hostPath"}
    if others:
        words = (
            f"{where} is a {', '.join(sorted(others))}; an engine may have "
            f"{', '.join(sorted(VOLUMES))}"
        )
        return "VolumeNotAllowed", words
    # What is below a volume's kind is as the user wrote it, whatever its form.
    if "serviceAccountToken" in json.dumps(volume.get("projected")):
        words = (
            f"{where} asks for a serviceAccountToken; engines have no identity of their own, so "
            f"remove that source"
        )
        return "TokenNotAllowed", words
    return None


def _engine(role: Role, policy: Policy) -> tuple[str, str] | None:
    engine = role.template.engine
    if not engine.image and not policy.engine_image:
        words = "engine.image: give one, because the operator was started without --engine-image"
        return "NoEngineImage", words
    refused = (_argument(argument.split("=", 1)[0]) for argument in engine.extra_args)
    return next((found for found in refused if found is not None), None)


def _argument(flag: str) -> tuple[str, str] | None:
    where = f"engine.extraArgs: {flag}"
    if _begins(flag, OWNED_FLAGS):
        words = (
            f"{where} is set by the operator; remove it and use the fields model, pic and "
            f"tensorParallel"
        )
        return "OwnedArgument", words
    if _begins(flag, KEY_FLAGS):
        words = (
            f"{where} would close the engine to the kubelet's probes and to the routers, which "
            f"send no key; remove it, and ask for keys in a gateway before the router's Service"
        )
        return "KeyNotSupported", words
    return None


def _begins(flag: str, flags: Sequence[str]) -> bool:
    # argparse takes the beginning of a flag for the flag itself.
    beginning = flag.startswith("--") and flag != "--"
    return beginning and any(known.startswith(flag) for known in flags)
