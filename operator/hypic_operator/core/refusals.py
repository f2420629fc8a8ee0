"""What is wrong with a spec that the schema lets pass, with what to write instead.

Does not know the schema's own limits; what it refuses is told in a condition, never raised.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .api import HypicCluster

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
    "--disaggregation-mode",
)

# With a key, the engine answers 401 to probes and routers, which send none.
KEY_FLAGS = ("--api-key", "--admin-api-key")


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator was started with.

    Attributes:
        engine_image: image of engines whose spec names none; empty for none.
        router_image: image of routers.
        pull_policy: when images are pulled, where the spec does not say.
        allow_host_path: whether folders of nodes may be mounted.
    """

    router_image: str
    engine_image: str = ""
    pull_policy: str = "IfNotPresent"
    allow_host_path: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing is changed until the spec is.

    Attributes:
        condition: the condition that tells it.
        reason: CamelCase word.
        message: what is wrong and what to write instead.
    """

    condition: Literal["ModelReady", "PrefillReady"]
    reason: str
    message: str


def refusal(cluster: HypicCluster, policy: Policy) -> Refusal | None:
    """The first thing that must be changed in the spec; None when it can be carried out."""
    return _model(cluster, policy) or _volumes(cluster, policy) or _engine(cluster, policy)


def _model(cluster: HypicCluster, policy: Policy) -> Refusal | None:
    if cluster.spec.model.source.host_path is None or policy.allow_host_path:
        return None
    return Refusal(
        "ModelReady",
        "HostPathNotAllowed",
        "model.source.hostPath: this operator does not allow folders of nodes; put the model on a "
        "PersistentVolumeClaim and use model.source.pvc, or start the operator with "
        "--allow-host-path",
    )


def _volumes(cluster: HypicCluster, policy: Policy) -> Refusal | None:
    volumes = cluster.spec.prefill.template.volumes
    named = [str(volume["name"]) for volume in volumes if "hostPath" in volume]
    if not named or policy.allow_host_path:
        return None
    return Refusal(
        "PrefillReady",
        "HostPathNotAllowed",
        f"prefill.template.volumes: {', '.join(named)} is a hostPath, which this operator does not "
        f"allow; use a persistentVolumeClaim, or start the operator with --allow-host-path",
    )


def _engine(cluster: HypicCluster, policy: Policy) -> Refusal | None:
    engine = cluster.spec.prefill.template.engine
    if not engine.image and not policy.engine_image:
        return Refusal(
            "PrefillReady",
            "NoEngineImage",
            "prefill.template.engine.image: give one, because the operator was started without "
            "--engine-image",
        )
    refused = (_argument(argument.split("=", 1)[0]) for argument in engine.extra_args)
    return next((found for found in refused if found is not None), None)


def _argument(flag: str) -> Refusal | None:
    where = f"prefill.template.engine.extraArgs: {flag}"
    if _begins(flag, OWNED_FLAGS):
        message = (
            f"{where} is set by the operator; remove it and use the fields model, pic and "
            f"prefill.tensorParallel"
        )
        return Refusal("PrefillReady", "OwnedArgument", message)
    if _begins(flag, KEY_FLAGS):
        message = (
            f"{where} would close the engine to the kubelet's probes and to the routers, which "
            f"send no key; remove it, and ask for keys in a gateway before the router's Service"
        )
        return Refusal("PrefillReady", "KeyNotSupported", message)
    return None


def _begins(flag: str, flags: Sequence[str]) -> bool:
    # argparse takes the beginning of a flag for the flag itself.
    beginning = flag.startswith("--") and flag != "--"
    return beginning and any(known.startswith(flag) for known in flags)
