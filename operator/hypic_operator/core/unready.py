"""What keeps a pod from being ready: what its scheduler, its kubelet or its containers say.

Does not decide what follows from it.
"""

import re
from collections.abc import Mapping
from typing import Any

from . import containers, names
from .trouble import Rank, Trouble, short

_NO_CLAIM = re.compile(r'persistentvolumeclaim "([^"]+)" not found')


def of_pod(pod: Mapping[str, Any]) -> Trouble | None:
    """What keeps this pod from being ready; None when it is ready."""
    status = pod.get("status", {})
    conditions = {item["type"]: item for item in status.get("conditions", ())}
    if names.ANNOTATION_DRAIN in pod["metadata"].get("annotations", {}):
        return Trouble("Draining", f"{pod['metadata']['name']} is draining", Rank.STARTING)
    if conditions.get("Ready", {}).get("status") == "True":
        return None
    lost_at = conditions.get("Ready", {}).get("lastTransitionTime") or ""
    found = _failed(status) or containers.of_pod(status, lost_at) or _unscheduled(conditions)
    found = found or _lost(pod) or Trouble("Starting", "is being started", Rank.STARTING)
    message = f"{pod['metadata']['name']} {found.message}"
    return Trouble(found.reason, message, found.rank)


def _lost(pod: Mapping[str, Any]) -> Trouble | None:
    """A pod that is not ready though the last that was heard of its containers is that they are."""
    containers = pod.get("status", {}).get("containerStatuses", ())
    if not containers or not all(container.get("ready") for container in containers):
        return None
    node = pod.get("spec", {}).get("nodeName", "unknown")
    message = (
        f"is on node {node}, which does not answer any more; when it is gone for good, "
        f"`kubectl delete node {node}` starts another pod elsewhere"
    )
    return Trouble("NodeLost", message, Rank.NOT_ANSWERING)


def _failed(status: Mapping[str, Any]) -> Trouble | None:
    if status.get("phase") != "Failed":
        return None
    reason = status.get("reason") or "PodFailed"
    if reason == "Evicted":
        words = short(status.get("message") or "its node gives no reason")
        advice = "raise prefill.template.engine.resources.requests to what an engine uses"
        return Trouble(reason, f"was evicted: {words}; {advice}, or free its node", Rank.CRASH)
    return Trouble(reason, f"failed: {short(status.get('message') or reason)}", Rank.CRASH)


def _unscheduled(conditions: Mapping[str, Mapping[str, Any]]) -> Trouble | None:
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") != "False":
        return None
    reason = scheduled.get("reason") or "Unschedulable"
    words = short(scheduled.get("message") or "the scheduler gave no reason")
    claim = _NO_CLAIM.search(words)
    if claim is not None:
        message = (
            f"waits for PersistentVolumeClaim {claim[1]}, which its namespace does not have; "
            f"create it, or correct the claimName in model.source.pvc or prefill.template.volumes"
        )
        return Trouble("ClaimNotFound", message, Rank.UNSCHEDULABLE)
    if "unbound immediate PersistentVolumeClaims" in words:
        message = f"has no node: {words}; `kubectl describe pvc` says what its claim waits for"
        return Trouble("ClaimNotBound", message, Rank.UNSCHEDULABLE)
    return Trouble(reason, f"has no node: {words}", Rank.UNSCHEDULABLE)
