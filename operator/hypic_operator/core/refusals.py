"""What is wrong with a spec that the schema lets pass, with what to write instead.

Does not know the schema's own limits; what it refuses is told in a condition, never raised.
"""

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
    for argument in engine.extra_args:
        flag = argument.split("=", 1)[0]
        if _owned(flag):
            return Refusal(
                "PrefillReady",
                "OwnedArgument",
                f"prefill.template.engine.extraArgs: {flag} is set by the operator; remove it and "
                f"use the fields model, pic and prefill.tensorParallel",
            )
    return None


def _owned(flag: str) -> bool:
    # argparse takes the beginning of a flag for the flag itself.
    beginning = flag.startswith("--") and flag != "--"
    return beginning and any(owned.startswith(flag) for owned in OWNED_FLAGS)
