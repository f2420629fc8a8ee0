"""Why a pod's containers do not run or are not ready, as the kubelet tells.

Does not look at the pod's own conditions; `unready` does.
"""

import re
from collections.abc import Mapping
from typing import Any

from .trouble import Rank, Trouble, short, worst

_PULL = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
_STARTING = {"ContainerCreating", "PodInitializing", ""}
_BACK_OFF = re.compile(r'^Back-off pulling image "[^"]*"(: )?(ErrImagePull: )?')
_KILLED = 137
_MORE_MEMORY = {
    "engine": "raise prefill.template.engine.resources.limits.memory or lower --max-total-tokens",
    "router": "raise router.replicas, so that each router holds fewer requests",
}


def of_pod(status: Mapping[str, Any], lost_at: str) -> Trouble | None:
    """What is the matter with the containers of a pod; None for nothing that they know.

    Args:
        status: the pod's.
        lost_at: RFC 3339, since when it is not ready; empty for unknown.
    """
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
    return Trouble(reason, f"cannot start: {short(message)}{advice}", Rank.CREATE)


def _pull(container: Mapping[str, Any], waiting: Mapping[str, Any]) -> Trouble:
    # The kubelet alternates between two wordings; one is told, so that the status rests.
    words = _BACK_OFF.sub("", waiting.get("message", "")) or "the kubelet gives no reason"
    message = f"cannot pull image {container.get('image')}: {short(words)}"
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
    return short((errors or lines or [""])[-1])
