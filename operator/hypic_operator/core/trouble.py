"""What keeps a pod from being ready, in the words of whoever knows: scheduler, kubelet or engine.

Does not decide what follows from it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from . import names

_PULL = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
_STARTING = {"ContainerCreating", "PodInitializing", ""}
_BACK_OFF = re.compile(r'^Back-off pulling image "[^"]*"(: )?(ErrImagePull: )?')
_NO_CLAIM = re.compile(r'persistentvolumeclaim "([^"]+)" not found')
# What the scheduler says of nodes that would do if they were not full.
_NO_ROOM = re.compile(
    r"Insufficient |Too many pods|cannot allocate all claims|anti-affinity|free ports"
)
_MESSAGE_LIMIT = 400
_KILLED = 137
_MORE_MEMORY = {
    "engine": "raise prefill.template.engine.resources.limits.memory or lower --max-total-tokens",
    "router": "raise router.replicas, so that each router holds fewer requests",
}


class Rank(IntEnum):
    """Which of several troubles is told: the highest."""

    LOADING = 0
    STARTING = 1
    NOT_ANSWERING = 2
    UNSCHEDULABLE = 3
    CREATE = 4
    IMAGE = 5
    CRASH = 6


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a pod is not ready.

    Attributes:
        reason: CamelCase word, the reason of a condition.
        message: for people.
        rank: how telling it is beside others.
    """

    reason: str
    message: str
    rank: Rank

    @property
    def lasting(self) -> bool:
        """Whether it stays until somebody acts; loading and starting end by themselves."""
        return self.rank > Rank.STARTING

    @property
    def crowded(self) -> bool:
        """Whether it would have room if another engine went."""
        return self.rank is Rank.UNSCHEDULABLE and _NO_ROOM.search(self.message) is not None


def of_pod(pod: Mapping[str, Any]) -> Trouble | None:
    """What keeps this pod from being ready; None when it is ready."""
    status = pod.get("status", {})
    conditions = {item["type"]: item for item in status.get("conditions", ())}
    if names.ANNOTATION_DRAIN in pod["metadata"].get("annotations", {}):
        return Trouble("Draining", f"{pod['metadata']['name']} is draining", Rank.STARTING)
    if conditions.get("Ready", {}).get("status") == "True":
        return None
    lost_at = conditions.get("Ready", {}).get("lastTransitionTime") or ""
    found = _failed(status) or _of_containers(status, lost_at) or _unscheduled(conditions)
    found = found or _lost(pod) or Trouble("Starting", "is being started", Rank.STARTING)
    message = f"{pod['metadata']['name']} {found.message}"
    return Trouble(found.reason, message, found.rank)


def worst(troubles: Iterable[Trouble | None]) -> Trouble | None:
    """The most telling one."""
    present = [trouble for trouble in troubles if trouble is not None]
    return max(present, key=lambda trouble: trouble.rank, default=None)


def quota(message: str, name: str) -> Trouble:
    """Pods of a StatefulSet that the API server does not let be made."""
    reason = "QuotaExceeded" if "exceeded quota" in message else "PodsRefused"
    return Trouble(reason, f"{name}: {_short(message)}", Rank.CREATE)


def held(message: str, name: str) -> Trouble:
    """A pod that its kubelet cannot start, in the words of an event."""
    volume = "olume" in message
    reason = "VolumeNotMounted" if volume else "SandboxNotCreated"
    return Trouble(reason, f"{name} cannot start: {_short(message)}", Rank.CREATE)


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
        words = _short(status.get("message") or "its node gives no reason")
        advice = "raise prefill.template.engine.resources.requests to what an engine uses"
        return Trouble(reason, f"was evicted: {words}; {advice}, or free its node", Rank.CRASH)
    return Trouble(reason, f"failed: {_short(status.get('message') or reason)}", Rank.CRASH)


def _unscheduled(conditions: Mapping[str, Mapping[str, Any]]) -> Trouble | None:
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") != "False":
        return None
    reason = scheduled.get("reason") or "Unschedulable"
    words = _short(scheduled.get("message") or "the scheduler gave no reason")
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


def _of_containers(status: Mapping[str, Any], lost_at: str) -> Trouble | None:
    statuses = (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
    return worst(_of_container(container, lost_at) for container in statuses)


def _of_container(container: Mapping[str, Any], lost_at: str) -> Trouble | None:
    if container.get("ready"):
        return None
    state, ended = container.get("state", {}), _ended(container)
    if "running" in state:
        return _running(container, lost_at)
    waiting = state.get("waiting", {})
    reason = waiting.get("reason", "")
    if reason in _PULL:
        return _pull(container, waiting)
    if ended:
        return _crash(container, ended)
    if reason not in _STARTING:
        return _not_created(reason, waiting.get("message", ""))
    return None


def _ended(container: Mapping[str, Any]) -> Mapping[str, Any] | None:
    last: Mapping[str, Any] = container.get("lastState", {})
    return container.get("state", {}).get("terminated") or last.get("terminated")


def _running(container: Mapping[str, Any], lost_at: str) -> Trouble:
    """Why a container that runs is not ready.

    Args:
        container: its status.
        lost_at: RFC 3339, since when its pod is not ready; empty for unknown.
    """
    started, ended = container.get("started"), _ended(container)
    since = container["state"]["running"].get("startedAt") or lost_at
    if started and lost_at > since:
        message = (
            "was ready and does not answer its readiness check any more; its log and "
            "`kubectl describe pod` say why, and deleting the pod starts another"
        )
        return Trouble("NotAnswering", message, Rank.NOT_ANSWERING)
    if ended:
        return _crash(container, ended)
    if container.get("name") == "download":
        return Trouble("Downloading", "is downloading the model", Rank.LOADING)
    if container.get("name") != "engine":
        words = "runs and does not take requests yet; its log says why if it stays so"
        return Trouble("Starting", words, Rank.STARTING)
    loaded = "has loaded the model and is about to be ready; its log says why if it stays so"
    return Trouble("Loading", loaded if started else "is loading the model", Rank.LOADING)


def _not_created(reason: str, message: str) -> Trouble:
    folder = "subPath" in message and 'volumeMount "model"' in message
    advice = "; is model.source.pvc.path a folder in the claim?" if folder else ""
    return Trouble(reason, f"cannot start: {_short(message)}{advice}", Rank.CREATE)


def _pull(container: Mapping[str, Any], waiting: Mapping[str, Any]) -> Trouble:
    # The kubelet alternates between two wordings; one is told, so that the status rests.
    words = _BACK_OFF.sub("", waiting.get("message", "")) or "the kubelet gives no reason"
    message = f"cannot pull image {container.get('image')}: {_short(words)}"
    return Trouble("ImagePullBackOff", message, Rank.IMAGE)


def _crash(container: Mapping[str, Any], ended: Mapping[str, Any]) -> Trouble:
    code, times = ended.get("exitCode"), container.get("restartCount", 0)
    if ended.get("reason") == "OOMKilled":
        message = f"was killed for using more memory than its limit, {times} restarts"
        advice = _MORE_MEMORY.get(container.get("name", ""))
        message = f"{message}; {advice}" if advice else message
        return Trouble("OOMKilled", message, Rank.CRASH)
    line = _telling_line(ended.get("message") or "")
    said = f": {line}" if line else ""
    if code == _KILLED:
        said += "; it was killed from outside, and `kubectl describe pod` says by whom"
    message = f"ended with code {code}, {times} restarts{said}"
    return Trouble("CrashLoopBackOff", message, Rank.CRASH)


def _telling_line(log: str) -> str:
    """The last line that names an error, else the last one."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\b\w*(Error|Exception)\b|\berror\b", line)]
    return _short((errors or lines or [""])[-1])


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _MESSAGE_LIMIT else f"{flat[: _MESSAGE_LIMIT - 1]}…"
