"""Events of kube-apiserver: those that the operator tells, and those that tell it what is wrong.

Decides nothing.
"""

from collections.abc import Mapping, Sequence

from . import kinds
from .connection import Connection, done
from .core import names
from .core.api import HypicCluster
from .core.reasons import Reason
from .metrics import Metrics

_NOT_MADE = frozenset(("FailedCreate",))
_NOT_STARTED = frozenset(("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox"))


class Events:
    """Events about the objects of clusters."""

    def __init__(self, connection: Connection, metrics: Metrics) -> None:
        self._connection = connection
        self._metrics = metrics

    async def tell(self, cluster: HypicCluster, reason: Reason, *, at: str, name: str) -> None:
        """Write one event about the cluster.

        Args:
            cluster: what it is about.
            reason: what happened.
            at: RFC 3339.
            name: the event's own, unique.
        """
        metadata = cluster.metadata
        body = {
            "metadata": {"name": name, "namespace": metadata.namespace},
            "involvedObject": {
                "apiVersion": names.API_VERSION,
                "kind": names.KIND,
                "name": metadata.name,
                "namespace": metadata.namespace,
                "uid": metadata.uid,
            },
            "reason": reason.reason,
            "message": reason.message[:1024],
            "type": "Warning" if reason.alarming else "Normal",
            "source": {"component": names.FIELD_MANAGER},
            "reportingComponent": names.FIELD_MANAGER,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
        self._metrics.write_total.labels("create", "Event").inc()
        path = kinds.path(kinds.EVENTS, metadata.namespace)
        done(*await self._connection.answer("POST", path, body))

    async def not_made(self, namespace: str, sets: Sequence[str]) -> Mapping[str, str]:
        """Why StatefulSets get no pods, by their names."""
        return await self._last(namespace, "StatefulSet", sets, _NOT_MADE)

    async def not_started(self, namespace: str, pods: Sequence[str]) -> Mapping[str, str]:
        """Why kubelets do not start pods, by their names."""
        return await self._last(namespace, "Pod", pods, _NOT_STARTED)

    async def _last(
        self, namespace: str, kind: str, named: Sequence[str], reasons: frozenset[str]
    ) -> Mapping[str, str]:
        """The last warning with one of these reasons about each object that has one."""
        found = {}
        for name in named:
            selector = f"involvedObject.kind={kind},involvedObject.name={name},type=Warning"
            answer = await self._connection.answer(
                "GET", kinds.path(kinds.EVENTS, namespace), query={"fieldSelector": selector}
            )
            events = done(*answer)["items"]
            telling = [event for event in events if event.get("reason") in reasons]
            telling.sort(key=lambda event: event.get("lastTimestamp") or "")
            if telling:
                found[name] = str(telling[-1].get("message", ""))
        return found
