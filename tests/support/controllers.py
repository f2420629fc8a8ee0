"""Plays the StatefulSet and Deployment controllers and the kubelets of one namespace, all the time.

Does not play the garbage collector, nor a scheduler: pods have room unless the test says otherwise.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any, Self

from . import resources
from .playing import Namespace, made_pod

Status = Callable[[Mapping[str, Any]], Mapping[str, Any]]
ENGINES = "serving.hypic.dev/revision"


class Controllers:
    """Makes and ends pods as StatefulSets say, and reports everything as it is told to.

    Args:
        namespace: where.
        status: what a pod's status is, from the pod; left out, ready.
        before_end: called with a pod before it is ended.
        period_s: how often it looks.
    """

    def __init__(
        self,
        namespace: Namespace,
        *,
        status: Status = lambda _: resources.READY,
        before_end: Callable[[Mapping[str, Any]], None] = lambda _: None,
        period_s: float = 0.1,
    ) -> None:
        self._namespace = namespace
        self._status = status
        self._before_end = before_end
        self._period_s = period_s
        self._stop = threading.Event()
        self._reported: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)
        assert self._failure is None, self._failure

    def _run(self) -> None:
        try:
            while not self._stop.wait(self._period_s):
                self._engines()
                self._routers()
        except BaseException as error:  # noqa: BLE001  told in the test's own thread
            self._failure = error

    def _engines(self) -> None:
        sets = {item["metadata"]["name"]: item for item in self._namespace.listed("StatefulSet")}
        pods = {item["metadata"]["name"]: item for item in self._namespace.listed("Pod", ENGINES)}
        for name, pod in pods.items():
            of_set, _, ordinal = name.rpartition("-")
            replicas = sets[of_set]["spec"]["replicas"] if of_set in sets else 0
            if int(ordinal) >= replicas:
                self._before_end(pod)
                self._namespace.delete("Pod", name)
            else:
                self._report("Pod", pod, self._status(pod))
        for name, made in sets.items():
            for ordinal in range(made["spec"]["replicas"]):
                if f"{name}-{ordinal}" not in pods:
                    self._namespace.create(made_pod(made, f"{name}-{ordinal}"))

    def _routers(self) -> None:
        for made in self._namespace.listed("Deployment"):
            replicas = made["spec"]["replicas"]
            status = dict.fromkeys(
                ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), replicas
            )
            observed = made["metadata"]["generation"]
            self._report("Deployment", made, {"observedGeneration": observed, **status})

    def _report(self, kind: str, live: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        key = (kind, live["metadata"]["uid"])
        if self._reported.get(key) != status:
            self._namespace.patch(kind, live["metadata"]["name"], {"status": status}, sub="status")
            self._reported[key] = dict(status)
