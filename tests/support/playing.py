"""Plays the controllers, the scheduler and the kubelets in one namespace of a bare API server."""

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from prometheus_client import CollectorRegistry

from hypic_operator import __main__ as operator_main
from hypic_operator.core.api import HypicCluster
from hypic_operator.core.serving import Answer
from hypic_operator.metrics import Metrics
from hypic_operator.settings import Settings

from . import resources
from .apiserver import ApiServer
from .waiting import eventually

PATHS = {
    "NetworkPolicy": ("apis/networking.k8s.io/v1", "networkpolicies"),
    "Ingress": ("apis/networking.k8s.io/v1", "ingresses"),
    "HorizontalPodAutoscaler": ("apis/autoscaling/v2", "horizontalpodautoscalers"),
    "HypicRole": ("apis/serving.hypic.dev/v1alpha1", "hypicroles"),
    "StatefulSet": ("apis/apps/v1", "statefulsets"),
    "Deployment": ("apis/apps/v1", "deployments"),
    "Service": ("api/v1", "services"),
    "ServiceAccount": ("api/v1", "serviceaccounts"),
    "Role": ("apis/rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": ("apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "PodDisruptionBudget": ("apis/policy/v1", "poddisruptionbudgets"),
    "Pod": ("api/v1", "pods"),
    "Event": ("api/v1", "events"),
    "Secret": ("api/v1", "secrets"),
    "ResourceQuota": ("api/v1", "resourcequotas"),
    "HypicCluster": ("apis/serving.hypic.dev/v1alpha1", "hypicclusters"),
    "HTTPRoute": ("apis/gateway.networking.k8s.io/v1", "httproutes"),
    "PodMonitor": ("apis/monitoring.coreos.com/v1", "podmonitors"),
}
CHILDREN = tuple(PATHS)[:11]
MERGE = "application/merge-patch+json"
LABEL = "serving.hypic.dev/cluster"


@dataclass(frozen=True, slots=True)
class Namespace:
    """One namespace, and what people and controllers do in it."""

    server: ApiServer
    name: str

    def path(self, kind: str, name: str = "", *, sub: str = "", query: str = "") -> str:
        prefix, plural = PATHS[kind]
        parts = [f"/{prefix}/namespaces/{self.name}/{plural}", *filter(None, (name, sub))]
        return "/".join(parts) + (f"?{query}" if query else "")

    def create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        status, answer = self.server.request("POST", self.path(body["kind"]), body)
        assert status == 201, answer
        return answer

    def get(self, kind: str, name: str) -> dict[str, Any] | None:
        status, answer = self.server.request("GET", self.path(kind, name))
        return answer if status == 200 else None

    def listed(self, kind: str, labels: str = "") -> list[dict[str, Any]]:
        query = f"labelSelector={labels}" if labels else ""
        status, answer = self.server.request("GET", self.path(kind, query=query))
        assert status == 200, answer
        return [{**item, "kind": kind} for item in answer["items"]]

    def patch(self, kind: str, name: str, body: Any, *, sub: str = "") -> dict[str, Any]:
        path = self.path(kind, name, sub=sub)
        status, answer = self.server.request("PATCH", path, body, content_type=MERGE)
        assert status == 200, answer
        return answer

    def delete(self, kind: str, name: str, *, propagation: str = "Background") -> None:
        body = {"propagationPolicy": propagation, "gracePeriodSeconds": 0}
        status, answer = self.server.request("DELETE", self.path(kind, name), body)
        assert status in {200, 202}, answer

    def children(self, cluster: str) -> list[dict[str, Any]]:
        """All that was made for a cluster, pods apart."""
        return [item for kind in CHILDREN for item in self.listed(kind, f"{LABEL}={cluster}")]

    def versions(self, cluster: str) -> dict[str, str]:
        """Resource versions of the cluster and all that was made for it."""
        own = self.get("HypicCluster", cluster)
        assert own is not None
        mine = {f"HypicCluster/{cluster}": own["metadata"]["resourceVersion"]}
        return mine | self.versions_of_children(cluster)

    def versions_of_children(self, cluster: str) -> dict[str, str]:
        """Resource versions of all that was made for a cluster."""
        return {
            f"{item['kind']}/{item['metadata']['name']}": item["metadata"]["resourceVersion"]
            for item in self.children(cluster)
        }

    def condition(self, cluster: str, kind: str) -> dict[str, Any]:
        """A condition that is about the spec as it is now; empty before that."""
        own = self.get("HypicCluster", cluster) or {"metadata": {}}
        generation = own["metadata"].get("generation")
        found = own.get("status", {}).get("conditions", [])
        return next(
            (
                item
                for item in found
                if item["type"] == kind and item["observedGeneration"] == generation
            ),
            {},
        )

    def until(self, cluster: str, kind: str, status: str, reason: str = "") -> dict[str, Any]:
        """The condition, when it says so."""
        return eventually(
            lambda: self.condition(cluster, kind),
            until=lambda seen: seen.get("status") == status and reason in {"", seen.get("reason")},
        )

    def sets(self, cluster: str) -> list[dict[str, Any]]:
        return self.listed("StatefulSet", f"{LABEL}={cluster}")

    def play_pods(self, made: Mapping[str, Any], status: Mapping[str, Any]) -> Sequence[str]:
        """Make the pods of a StatefulSet as its controller would, and report them so."""
        spec, names = made["spec"], []
        for ordinal in range(spec["replicas"]):
            names.append(name := f"{made['metadata']['name']}-{ordinal}")
            if self.get("Pod", name) is None:
                self.create(made_pod(made, name))
            self.patch("Pod", name, {"status": status}, sub="status")
        return names

    def play_router(self, cluster: str, *, ready: int) -> None:
        """Report the router's Deployment."""
        made = self.get("Deployment", cluster)
        assert made is not None
        status = {
            "observedGeneration": made["metadata"]["generation"],
            "replicas": made["spec"]["replicas"],
            "updatedReplicas": made["spec"]["replicas"],
            "readyReplicas": ready,
            "availableReplicas": ready,
        }
        self.patch("Deployment", cluster, {"status": status}, sub="status")

    def bring_up(self, cluster: str) -> dict[str, Any]:
        """Wait for the first set, and report everything ready."""
        made = eventually(lambda: self.sets(cluster), until=lambda seen: len(seen) == 1)[0]
        eventually(lambda: self.get("Deployment", cluster), until=bool)
        self.play_pods(made, resources.READY)
        self.play_router(cluster, ready=2)
        self.until(cluster, "Ready", "True")
        return made


def made_pod(made: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A pod as a StatefulSet's controller makes it."""
    template = made["spec"]["template"]
    owner = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": made["metadata"]["name"],
        "uid": made["metadata"]["uid"],
        "controller": True,
    }
    metadata = {**template["metadata"], "name": name, "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


@dataclass
class PlayedProber:
    """Answers for the front door as the test says."""

    answer: Answer = field(
        default_factory=lambda: Answer(token=True, reason="TokenReceived", message="got one")
    )
    asked: int = 0

    async def ask(self, _cluster: HypicCluster) -> Answer:
        self.asked += 1
        return self.answer


class RunningOperator:
    """The operator in a thread with a loop of its own, until it is stopped."""

    def __init__(self, settings: Settings, prober: PlayedProber) -> None:
        self._settings = settings
        self._prober = prober
        self._metrics = Metrics(CollectorRegistry())
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.failure: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        if self.failure is not None:
            raise AssertionError("the operator failed") from self.failure

    def end(self) -> None:
        """Stop it, if it has not ended by itself."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)
        assert self.ended, "the operator did not stop"

    @property
    def ended(self) -> bool:
        """Whether it runs no more."""
        return not self._thread.is_alive()

    @property
    def looks(self) -> float:
        """How often it has looked at a HypicCluster to the end, one that is gone included."""
        name = "hypic_operator_reconcile_seconds_count"
        value = self._metrics.registry.get_sample_value
        return sum(value(name, {"result": result}) or 0.0 for result in ("ok", "gone"))

    @property
    def writes(self) -> dict[str, float]:
        """Requests that change something, by verb and kind."""
        found = self._metrics.write_total.collect()
        return {
            f"{sample.labels['verb']} {sample.labels['kind']}": sample.value
            for metric in found
            for sample in metric.samples
            if sample.name.endswith("_total")
        }

    def look(self, namespace: Namespace, cluster: str) -> None:
        """Have it look at the only cluster there is, and wait for a look that began after this."""
        self._look_after_a_touch(namespace, cluster)  # this one may have begun before
        self._look_after_a_touch(namespace, cluster)

    def rest(self, namespace: Namespace, cluster: str) -> None:
        """Have it look until a look finds nothing to write: the next would find the same."""
        eventually(lambda: self._looks_without_writing(namespace, cluster))

    def _look_after_a_touch(self, namespace: Namespace, cluster: str) -> None:
        before = self.looks
        note = {"metadata": {"annotations": {"touched": str(time.monotonic_ns())}}}
        namespace.patch("HypicCluster", cluster, note)
        eventually(lambda: self.looks, until=lambda seen: seen > before)

    def _looks_without_writing(self, namespace: Namespace, cluster: str) -> bool:
        before = self.writes
        self.look(namespace, cluster)
        return self.writes == before

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(
                operator_main.run(
                    self._settings, self._metrics, prober=self._prober, stop=self._stop
                )
            )
        except BaseException as error:  # noqa: BLE001  told in the test's own thread
            self.failure = error
        finally:
            # TLS connections end in a few turns of the loop after they are closed.
            self._loop.run_until_complete(asyncio.sleep(0.2))
            self._loop.close()
