"""Gives a namespace read-only claims on the engine's environment and the models.

Static volumes over folders of this machine: pods under the restricted security standard may not
mount host paths themselves, and nothing has to be provisioned.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..cluster import kube
from ..errors import RefusedError
from ..progress import step
from ..settings import Settings
from ..shell import wait_until
from . import engine_env, model

BIND_DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim's name and the folder of the host behind it."""

    name: str
    folder: str


def volume(claim: Claim, namespace: str) -> dict[str, Any]:
    """The volume of one claim; it can be bound by that claim only."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{claim.name}-{namespace}"},
        "spec": {
            "accessModes": ["ReadOnlyMany"],
            "capacity": {"storage": "1Gi"},  # not enforced; claims must ask for something
            "claimRef": {"name": claim.name, "namespace": namespace},
            "hostPath": {"path": claim.folder, "type": "Directory"},
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
        },
    }


def request(claim: Claim, namespace: str) -> dict[str, Any]:
    """The claim itself."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim.name, "namespace": namespace},
        "spec": {
            "accessModes": ["ReadOnlyMany"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "",
            "volumeName": f"{claim.name}-{namespace}",
        },
    }


def publish(settings: Settings, namespace: str) -> tuple[str, ...]:
    """Names of the claims, all bound; the namespace is made when missing."""
    if settings.existing_kubeconfig is not None:
        raise RefusedError(
            "publish offers folders of this machine, and the cluster in use was not made here: "
            "use an engine image built on SGLang's own and a claim of that cluster"
        )
    engine_env.python(settings)
    model.path(settings)
    claims = (
        Claim("hypic-engine-env", _stable(settings, "engine-env", engine_env.folder(settings))),
        Claim("hypic-models", str(model.folder(settings))),
    )
    with step(f"publish {', '.join(claim.name for claim in claims)} in namespace {namespace}"):
        meta = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        if kube.get(settings, "namespace", namespace) is None:
            kube.apply(settings, meta)
        for claim in claims:
            _offer(settings, claim, namespace)
    return tuple(claim.name for claim in claims)


def _stable(settings: Settings, name: str, target: Path) -> str:
    """A path that stays when versions change, because a volume's path cannot be changed."""
    link = settings.cache / "published" / name
    link.parent.mkdir(exist_ok=True)
    fresh = link.with_name(f".{name}.{os.getpid()}")
    fresh.symlink_to(target)
    fresh.replace(link)
    return str(link)


def _offer(settings: Settings, claim: Claim, namespace: str) -> None:
    wanted = volume(claim, namespace)
    name = wanted["metadata"]["name"]
    there = kube.get(settings, "persistentvolume", name)
    if there is not None and there.get("status", {}).get("phase") in ("Released", "Failed"):
        # Its claim was deleted, and a volume remembers the one claim it belonged to.
        kube.kubectl(settings, "delete", "persistentvolume", name, "--wait")
    kube.apply(settings, wanted, request(claim, namespace))
    wait_until(
        lambda: _is_bound(settings, claim.name, namespace),
        what=f"claim {claim.name} in {namespace} bound",
        deadline_s=BIND_DEADLINE_S,
    )


def _is_bound(settings: Settings, name: str, namespace: str) -> bool:
    claim = kube.get(settings, "persistentvolumeclaim", name, f"--namespace={namespace}")
    return claim is not None and claim.get("status", {}).get("phase") == "Bound"
