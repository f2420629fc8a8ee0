"""A frozen snapshot of what runs for one HypicCluster, read from the API server's objects.

Does not fetch, and does not know what is wanted.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from . import names, trouble
from .api import HypicCluster
from .pods import Object, Pod, leaving


@dataclass(frozen=True, slots=True)
class Child:
    """An object with the cluster's label.

    Attributes:
        kind: its kind.
        name: its name, in the cluster's namespace.
        owned: whether this very HypicCluster controls it.
        leaving: whether it is being deleted.
        live: all of it.
    """

    kind: str
    name: str
    owned: bool
    leaving: bool
    live: Object


@dataclass(frozen=True, slots=True)
class EngineSet:
    """The StatefulSet of one role and revision.

    Attributes:
        name: its name.
        component: its role.
        revision: what its pods are.
        replicas: pods it is told to have.
        present: pods it has, ending ones included.
        ready: pods that take requests.
        image: image of its engines.
    """

    name: str
    component: str
    revision: str
    replicas: int
    present: int
    ready: int
    image: str


@dataclass(frozen=True, slots=True)
class Front:
    """The router's Deployment: how many are asked for, ready, and of the present template."""

    replicas: int
    ready: int
    updated: int
    current: bool
    failure: str | None


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that runs for one HypicCluster.

    Attributes:
        children: what the operator makes, and whatever else bears the cluster's label.
        pods: the pods that are to stay.
        present: pods of each engine set, ending ones included.
        failures: why a StatefulSet's pods cannot be made, by its name.
        served: kinds that the API server has.
    """

    children: tuple[Child, ...] = ()
    pods: tuple[Pod, ...] = ()
    present: Mapping[str, int] | None = None
    failures: Mapping[str, str] | None = None
    served: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        cluster: HypicCluster,
        children: Sequence[Object],
        pods: Sequence[Object],
        served: frozenset[str] = frozenset(),
    ) -> Self:
        """The snapshot in objects with the cluster's label, of the kinds that are served."""
        present = Counter(pod["metadata"]["name"].rpartition("-")[0] for pod in pods)
        staying = tuple(Pod.of(pod) for pod in pods if not leaving(pod))
        found = tuple(_child(cluster, item) for item in children)
        return cls(found, staying, present, served=served)

    def explained(self, failures: Mapping[str, str], held: Mapping[str, str]) -> Self:
        """The same with the reasons why sets get no pods, and why pods cannot be started."""
        pods = tuple(
            replace(pod, trouble=trouble.held(held[pod.name], pod.name))
            if pod.name in held
            else pod
            for pod in self.pods
        )
        return replace(self, pods=pods, failures=failures)

    def waiting(self) -> tuple[str, ...]:
        """Names of pods of which only an event could tell what they wait for."""
        found = (pod for pod in self.pods if pod.trouble and not pod.running)
        return tuple(p.name for p in found if p.trouble and p.trouble.reason == "Starting")

    def child(self, kind: str, name: str) -> Child | None:
        """The child of that kind and name, whoever owns it."""
        return next((c for c in self.children if (c.kind, c.name) == (kind, name)), None)

    def sets(self) -> tuple[EngineSet, ...]:
        """The engine sets that are to stay, of every revision."""
        found = (c for c in self.children if c.kind == "StatefulSet" and c.owned and not c.leaving)
        return tuple(self._set(child) for child in found)

    def short(self) -> tuple[str, ...]:
        """Names of sets that have fewer pods than they are told to have."""
        return tuple(item.name for item in self.sets() if item.present < item.replicas)

    def going(self, engine_set: str) -> int:
        """How many pods of a set are being deleted."""
        staying = sum(pod.engine_set == engine_set for pod in self.pods)
        return (self.present or {}).get(engine_set, 0) - staying

    def front(self, cluster: HypicCluster) -> Front | None:
        """The router's Deployment; None when there is none yet."""
        child = self.child("Deployment", names.service(cluster))
        return None if child is None or not child.owned else _front(child.live)

    def of_part(self, component: str, revision: str) -> tuple[Pod, ...]:
        """Engines of one role and revision."""
        part = (component, revision)
        return tuple(pod for pod in self.pods if (pod.component, pod.revision) == part)

    def of_component(self, component: names.Component) -> tuple[Pod, ...]:
        """Pods of one component, of every revision."""
        return tuple(pod for pod in self.pods if pod.component == component)

    def crowded(self, component: str, revision: str) -> str:
        """Why an engine of this role and revision finds no room, in the scheduler's words."""
        found = (pod.trouble for pod in self.of_part(component, revision))
        return next((item.message for item in found if item and item.crowded), "")

    def _set(self, child: Child) -> EngineSet:
        labels = child.live["metadata"].get("labels", {})
        spec = child.live.get("spec", {})
        containers = spec.get("template", {}).get("spec", {}).get("containers", ())
        return EngineSet(
            child.name,
            labels.get(names.LABEL_COMPONENT, ""),
            labels.get(names.LABEL_REVISION, ""),
            replicas=spec.get("replicas", 1),
            present=(self.present or {}).get(child.name, 0),
            ready=sum(pod.ready for pod in self.pods if pod.engine_set == child.name),
            image=next((item["image"] for item in containers if item["name"] == "engine"), ""),
        )


def owned(cluster: HypicCluster, item: Object) -> bool:
    """Whether this very HypicCluster controls the object."""
    owners = item["metadata"].get("ownerReferences", ())
    return any(o.get("controller") and o["uid"] == cluster.metadata.uid for o in owners)


def _child(cluster: HypicCluster, item: Object) -> Child:
    name = item["metadata"]["name"]
    return Child(
        item["kind"], name, owned(cluster, item), "deletionTimestamp" in item["metadata"], item
    )


def _front(live: Object) -> Front:
    status, conditions = live.get("status", {}), {}
    for condition in status.get("conditions", ()):
        conditions[condition["type"]] = condition
    failure = conditions.get("ReplicaFailure", {})
    return Front(
        replicas=live.get("spec", {}).get("replicas", 1),
        ready=status.get("availableReplicas", 0),
        updated=status.get("updatedReplicas", 0),
        current=status.get("observedGeneration", 0) >= live["metadata"].get("generation", 0),
        failure=failure.get("message") if failure.get("status") == "True" else None,
    )
