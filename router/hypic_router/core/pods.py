"""What a Kubernetes pod says about the engine in it."""

from collections.abc import Mapping
from typing import Any

from .workers import Address, Role, State

CLUSTER_LABEL = "serving.hypic.dev/cluster"
ROLE_LABEL = "serving.hypic.dev/role"
REVISION_LABEL = "serving.hypic.dev/revision"
DRAIN_ANNOTATION = "serving.hypic.dev/drain"
BOOTSTRAP_PORT = 8998


def selector(cluster: str) -> str:
    """The label selector of a cluster's engines."""
    return f"{CLUSTER_LABEL}={cluster},{ROLE_LABEL} in ({','.join(Role)})"


def address(pod: Mapping[str, Any], port: int) -> Address | None:
    """Where the pod's engine is and whether to send to it; ``None`` while it has no address."""
    metadata, status = pod.get("metadata") or {}, pod.get("status") or {}
    ip = status.get("podIP")
    if not ip or status.get("phase") in ("Failed", "Succeeded"):
        return None
    host = f"[{ip}]" if ":" in ip else ip
    state, reason = _state(metadata, status)
    labels = metadata.get("labels") or {}
    role = Role(labels.get(ROLE_LABEL, Role.BOTH))
    return Address(
        name=metadata["name"],
        url=f"http://{host}:{port}",
        uid=metadata.get("uid", ""),
        state=state,
        reason=reason,
        role=role,
        revision=labels.get(REVISION_LABEL, ""),
        bootstrap=(ip, BOOTSTRAP_PORT) if role is Role.PREFILL else ("", 0),
    )


def _state(metadata: Mapping[str, Any], status: Mapping[str, Any]) -> tuple[State, str]:
    if metadata.get("deletionTimestamp"):
        return State.DRAINING, "the pod is terminating"
    deadline = (metadata.get("annotations") or {}).get(DRAIN_ANNOTATION)
    if deadline is not None:
        return State.DRAINING, f"drains until {deadline}"
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready":
            if condition.get("status") == "True":
                return State.READY, ""
            return State.UNREADY, condition.get("message") or "the pod is not ready"
    return State.UNREADY, "the pod has no Ready condition yet"
