"""What keeps a pod from being ready, in the words of whoever knows: scheduler, kubelet or engine.

Does not decide what follows from it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

_PULL = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
_STARTING = {"ContainerCreating", "PodInitializing", ""}
_BACK_OFF = re.compile(r'^Back-off pulling image "[^"]*"(: )?(ErrImagePull: )?')
_MESSAGE_LIMIT = 400


class Rank(IntEnum):
    """Which of several troubles is told: the highest."""

    LOADING = 0
    STARTING = 1
    UNSCHEDULABLE = 2
    CREATE = 3
    IMAGE = 4
    CRASH = 5


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


def of_pod(pod: Mapping[str, Any]) -> Trouble | None:
    """What keeps this pod from being ready; None when it is ready."""
    status = pod.get("status", {})
    conditions = {item["type"]: item for item in status.get("conditions", ())}
    if conditions.get("Ready", {}).get("status") == "True":
        return None
    found = _failed(status) or _of_containers(status) or _unscheduled(conditions)
    found = found or Trouble("Starting", "is being started", Rank.STARTING)
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


def _failed(status: Mapping[str, Any]) -> Trouble | None:
    if status.get("phase") != "Failed":
        return None
    reason = status.get("reason") or "PodFailed"
    return Trouble(reason, f"failed: {_short(status.get('message') or reason)}", Rank.CRASH)


def _unscheduled(conditions: Mapping[str, Mapping[str, Any]]) -> Trouble | None:
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") != "False":
        return None
    reason = scheduled.get("reason") or "Unschedulable"
    words = _short(scheduled.get("message") or "the scheduler gave no reason")
    return Trouble(reason, f"has no node: {words}", Rank.UNSCHEDULABLE)


def _of_containers(status: Mapping[str, Any]) -> Trouble | None:
    statuses = (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
    return worst(_of_container(container) for container in statuses)


def _of_container(container: Mapping[str, Any]) -> Trouble | None:
    if container.get("ready"):
        return None
    state = container.get("state", {})
    waiting = state.get("waiting", {})
    reason = waiting.get("reason", "")
    ended = state.get("terminated") or container.get("lastState", {}).get("terminated")
    if reason in _PULL:
        return _pull(container, waiting)
    if ended:
        return _crash(container, ended)
    if reason not in _STARTING:
        return Trouble(reason, f"cannot start: {_short(waiting.get('message', ''))}", Rank.CREATE)
    if "running" in state:
        return Trouble("Loading", "is loading the model", Rank.LOADING)
    return None


def _pull(container: Mapping[str, Any], waiting: Mapping[str, Any]) -> Trouble:
    # The kubelet alternates between two wordings; one is told, so that the status rests.
    words = _BACK_OFF.sub("", waiting.get("message", "")) or "the kubelet gives no reason"
    message = f"cannot pull image {container.get('image')}: {_short(words)}"
    return Trouble("ImagePullBackOff", message, Rank.IMAGE)


def _crash(container: Mapping[str, Any], ended: Mapping[str, Any]) -> Trouble:
    code, times = ended.get("exitCode"), container.get("restartCount", 0)
    if ended.get("reason") == "OOMKilled":
        message = f"was killed for using more memory than its limit, {times} restarts"
        return Trouble("OOMKilled", message, Rank.CRASH)
    line = _telling_line(ended.get("message") or "")
    said = f": {line}" if line else ""
    return Trouble(
        "CrashLoopBackOff", f"ended with code {code}, {times} restarts{said}", Rank.CRASH
    )


def _telling_line(log: str) -> str:
    """The last line that names an error, else the last one."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\b\w*(Error|Exception)\b|\berror\b", line)]
    return _short((errors or lines or [""])[-1])


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _MESSAGE_LIMIT else f"{flat[: _MESSAGE_LIMIT - 1]}…"
