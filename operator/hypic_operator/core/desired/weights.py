"""How the model's files reach an engine: the volume, its mount, and the download before the start.

Does not know what the engine does with them.
"""

import inspect
from typing import Any

from ... import download
from .. import names
from ..api import HypicCluster
from . import pod

VOLUME = "model"
DOWNLOAD = "download"
_CACHE = "/cache"

_SCRIPT = inspect.getsource(download)


def volume(cluster: HypicCluster) -> dict[str, Any]:
    """The volume that holds the model, or will."""
    source, cache = cluster.spec.model.source, cluster.spec.model_cache
    if source.host_path is not None:
        return {"name": VOLUME, "hostPath": {"path": source.host_path.path, "type": "Directory"}}
    if source.image is not None:
        policy = source.image.pull_policy
        pulled = {"pullPolicy": policy} if policy else {}
        return {"name": VOLUME, "image": {"reference": source.image.reference, **pulled}}
    if source.pvc is not None:
        claim = {"claimName": source.pvc.claim_name, "readOnly": True}
        return {"name": VOLUME, "persistentVolumeClaim": claim}
    if cache.pvc is not None:
        return {"name": VOLUME, "persistentVolumeClaim": {"claimName": cache.pvc.claim_name}}
    if cache.node is not None:
        return {"name": VOLUME, "hostPath": {"path": cache.node.path, "type": "Directory"}}
    return {"name": VOLUME, "emptyDir": {}}


def mount(cluster: HypicCluster) -> dict[str, Any]:
    """Where the engine sees it."""
    path = _folder(cluster)
    found = {"name": VOLUME, "mountPath": f"/models/{cluster.spec.model.name}", "readOnly": True}
    return {**found, "subPath": path} if path else found


def downloads(cluster: HypicCluster, container: dict[str, Any]) -> list[dict[str, Any]]:
    """The container that downloads the model before the engine starts, where there is one.

    Args:
        cluster: whose model it is.
        container: the engine's, whose image, environment and mounts it shares.
    """
    source = cluster.spec.model.source.hugging_face
    if source is None:
        return []
    said = {
        "HYPIC_REPO": source.repo,
        "HYPIC_REVISION": source.revision,
        "HYPIC_FOLDER": f"{_CACHE}/{_folder(cluster)}",
        "HYPIC_PORT": str(names.ENGINE_PORT),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }
    env = [*container["env"], *({"name": name, "value": value} for name, value in said.items())]
    if source.token_secret_ref is not None:
        key = {"name": source.token_secret_ref.name, "key": source.token_secret_ref.key}
        env.append({"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": key}})
    others = (item for item in container["volumeMounts"] if item["name"] != VOLUME)
    return [
        {
            "name": DOWNLOAD,
            "image": container["image"],
            "imagePullPolicy": container["imagePullPolicy"],
            "command": ["python3", "-c", _SCRIPT],
            "env": env,
            "resources": {
                "requests": {"cpu": "250m", "memory": "512Mi"},
                "limits": {"memory": "4Gi"},
            },
            "securityContext": pod.container_security(),
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [{"name": VOLUME, "mountPath": _CACHE}, *others],
        }
    ]


def security(cluster: HypicCluster) -> dict[str, Any]:
    """Security context of the pod; a shared cache is written by the group that its pods have."""
    if cluster.spec.model_cache.pvc is None:
        return pod.security()
    group = {"fsGroup": pod.USER_ID, "fsGroupChangePolicy": "OnRootMismatch"}
    return {**pod.security(), **group}


def _folder(cluster: HypicCluster) -> str:
    """The model's folder inside the volume; empty for the volume itself."""
    source = cluster.spec.model.source
    if source.hugging_face is not None:
        return names.folder(source.hugging_face.repo, source.hugging_face.revision)
    inside = source.pvc or source.image
    return inside.path.strip("/") if inside is not None else ""
