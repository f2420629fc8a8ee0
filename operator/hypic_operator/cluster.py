"""What the operator asks of kube-apiserver: observe, apply, delete, write status; `events` tells.

Decides nothing. Objects stay plain JSON, because server-side apply must send exactly our fields.
"""

import asyncio
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, cast

from . import kinds
from .connection import APPLY, MERGE, Connection, done
from .core import names
from .core.api import HypicCluster
from .core.difference import Manifest
from .core.observed import Observed, owned
from .core.plan import Ref, Resize
from .core.pods import Object, Pod
from .errors import NameTakenError
from .events import Events
from .metrics import Metrics

_MANAGER = {"fieldManager": names.FIELD_MANAGER}
_GONE_ALREADY = {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}


class Cluster:
    """kube-apiserver, seen through the few requests that an operator makes.

    Attributes:
        events: those about objects of a cluster.
    """

    def __init__(self, connection: Connection, metrics: Metrics) -> None:
        self.events = Events(connection, metrics)
        self._connection = connection
        self._metrics = metrics

    async def serves_our_kinds(self) -> bool:
        """Whether both CustomResourceDefinitions are installed."""
        status, body = await self._connection.answer("GET", f"/{kinds.OURS[0]}")
        if status != HTTPStatus.OK:
            return False
        served = {item["name"] for item in body["resources"]}
        return served >= {names.PLURAL, names.ROLE_PLURAL}

    async def cluster(self, namespace: str, name: str) -> HypicCluster | None:
        """The resource as it is now; None when it is gone."""
        status, body = await self._connection.answer("GET", kinds.path(kinds.OURS, namespace, name))
        if status == HTTPStatus.NOT_FOUND:
            return None
        return HypicCluster.model_validate(done(status, body))

    async def observe(self, cluster: HypicCluster) -> Observed:
        """Everything with the cluster's label, and why pods that should be there are not."""
        namespace = cluster.metadata.namespace
        query = {"labelSelector": f"{names.LABEL_CLUSTER}={cluster.metadata.name}"}
        pods, *listed = await asyncio.gather(
            self._list(kinds.PODS, namespace, query),
            *(self._list(place, namespace, query) for place in kinds.KINDS.values()),
            *(self._list_if_served(place, namespace, query) for place in kinds.OPTIONAL.values()),
        )
        # Items of a list do not say what they are.
        children = [
            {**item, "apiVersion": prefix.partition("/")[2], "kind": kind}
            for (kind, (prefix, _)), items in zip(kinds.ALL.items(), listed, strict=True)
            for item in items or ()
        ]
        served = frozenset(
            kind for kind, items in zip(kinds.ALL, listed, strict=True) if items is not None
        )
        observed = Observed.of(cluster, children, pods or (), served)
        short, waiting = observed.short(), observed.waiting()
        failures = await self.events.not_made(namespace, short)
        return observed.explained(failures, await self.events.not_started(namespace, waiting))

    async def apply(
        self, cluster: HypicCluster, manifest: Manifest, *, seen: Object | None
    ) -> bool:
        """Make an object what the manifest says; fields of others stay.

        Args:
            cluster: whose object it is.
            manifest: all fields that are ours.
            seen: the object as it was; None for none, so what bears its name is another's.

        Returns:
            Whether that changed anything.

        Raises:
            RefusedError: the API server will not have it.
            UnavailableError: try again.
        """
        kind, metadata = manifest["kind"], manifest["metadata"]
        path = kinds.path(kinds.ALL[kind], metadata["namespace"], metadata["name"])
        if seen is None:
            status, body = await self._connection.answer("GET", path)
            if status == HTTPStatus.OK and not owned(cluster, body):
                raise NameTakenError(kind, metadata["name"])
        before = {} if seen is None else seen["metadata"]
        if kind == names.ROLE_KIND:
            manifest = _as_seen(manifest, before)
        made = await self._patch(kind, path, manifest, APPLY)
        return bool(made["metadata"]["resourceVersion"] != before.get("resourceVersion"))

    async def resize(self, cluster: HypicCluster, to: Resize) -> None:
        """Tell a set how many pods it has."""
        path = kinds.path(kinds.KINDS["StatefulSet"], cluster.metadata.namespace, to.name)
        body = {"metadata": {"uid": to.uid}, "spec": {"replicas": to.replicas}}
        await self._patch("StatefulSet", path, body, MERGE)

    async def scale(self, role: Object, replicas: int) -> None:
        """Set the number of a HypicRole, unless somebody else has just changed it."""
        metadata = role["metadata"]
        path = kinds.path(kinds.KINDS[names.ROLE_KIND], metadata["namespace"], metadata["name"])
        seen = {"resourceVersion": metadata["resourceVersion"]}
        body = {"metadata": seen, "spec": {"replicas": replicas}}
        await self._patch(names.ROLE_KIND, path, body, MERGE)

    async def mark(self, cluster: HypicCluster, pod: Pod, drain: str | None) -> bool:
        """Write a pod's drain annotation, None to remove it; returns whether the pod was there."""
        path = kinds.path(kinds.PODS, cluster.metadata.namespace, pod.name)
        noted = {names.ANNOTATION_DRAIN: drain}
        # With the uid, a pod of the same name made meanwhile is not taken for this one.
        body = {"metadata": {"uid": pod.uid, "annotations": noted}}
        self._metrics.write_total.labels("patch", "Pod").inc()
        status, answer = await self._connection.answer(
            "PATCH", path, body, query=_MANAGER, content_type=MERGE
        )
        if status in _GONE_ALREADY:
            return False
        done(status, answer)
        return True

    async def delete(self, cluster: HypicCluster, ref: Ref) -> bool:
        """Delete an object if it is still the one that was seen; returns whether it was."""
        path = kinds.path(kinds.ALL[ref.kind], cluster.metadata.namespace, ref.name)
        body = {"propagationPolicy": "Background", "preconditions": {"uid": ref.uid}}
        self._metrics.write_total.labels("delete", ref.kind).inc()
        status, answer = await self._connection.answer("DELETE", path, body)
        if status in _GONE_ALREADY:
            return False
        done(status, answer)
        return True

    async def write_status(self, cluster: HypicCluster, status: Mapping[str, Any]) -> None:
        """Replace the status that is ours."""
        metadata = cluster.metadata
        body = {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            # With the uid, a cluster of the same name made meanwhile is not taken for this one.
            "metadata": {"name": metadata.name, "uid": metadata.uid},
            "status": status,
        }
        path = f"{kinds.path(kinds.OURS, metadata.namespace, metadata.name)}/status"
        await self._patch(names.KIND, path, body, APPLY)

    async def write_role_status(self, role: Object, status: Mapping[str, Any]) -> None:
        """Replace the status of a HypicRole."""
        metadata = role["metadata"]
        body = {
            "apiVersion": names.API_VERSION,
            "kind": names.ROLE_KIND,
            "metadata": {"name": metadata["name"], "uid": metadata["uid"]},
            "status": status,
        }
        path = kinds.path(kinds.KINDS[names.ROLE_KIND], metadata["namespace"], metadata["name"])
        await self._patch(names.ROLE_KIND, f"{path}/status", body, APPLY)

    async def _list(
        self, place: tuple[str, str], namespace: str, query: Mapping[str, str]
    ) -> Sequence[Object]:
        answer = await self._connection.answer("GET", kinds.path(place, namespace), query=query)
        return cast("Sequence[Object]", done(*answer)["items"])

    async def _list_if_served(
        self, place: tuple[str, str], namespace: str, query: Mapping[str, str]
    ) -> Sequence[Object] | None:
        status, body = await self._connection.answer(
            "GET", kinds.path(place, namespace), query=query
        )
        if status == HTTPStatus.NOT_FOUND:
            return None
        return cast("Sequence[Object]", done(status, body)["items"])

    async def _patch(self, kind: str, path: str, body: Any, content_type: str) -> Any:
        query = {**_MANAGER, "force": "true"} if content_type == APPLY else _MANAGER
        self._metrics.write_total.labels("patch", kind).inc()
        answer = await self._connection.answer(
            "PATCH", path, body, query=query, content_type=content_type
        )
        return done(*answer)


def _as_seen(manifest: Manifest, before: Mapping[str, Any]) -> Manifest:
    """The manifest for an object that nobody has changed since: a scaler's number must not go."""
    if "resourceVersion" not in before:
        return manifest
    version = {"resourceVersion": before["resourceVersion"]}
    return {**manifest, "metadata": {**manifest["metadata"], **version}}
