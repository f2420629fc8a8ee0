"""A HypicCluster's engines and one router in a namespace: pods that are played, and answer."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from . import resources
from .controllers import Controllers
from .draining import PlayedEngine, PlayedRouter, listening
from .playing import Namespace

ANNOTATION = "serving.hypic.dev/drain"


class Fleet:
    """Engines by the names of their pods, one router, and the controllers that run them."""

    def __init__(self, namespace: Namespace, *, routed: bool = False) -> None:
        self.namespace = namespace
        self.router = PlayedRouter()
        self.engines: dict[str, PlayedEngine] = {}
        self.cut: list[str] = []
        self.ready = True
        self.metrics = ""
        self._spare = [PlayedEngine() for _ in range(6)]
        self._routed = routed

    @contextmanager
    def running(self) -> Iterator["Fleet"]:
        with (
            listening(self.router, *self._spare),
            Controllers(self.namespace, status=self._status, before_end=self._ended),
        ):
            self._make_router()
            yield self

    def annotation(self, pod: str) -> str | None:
        found = self.namespace.get("Pod", pod) or {"metadata": {}}
        value: str | None = found["metadata"].get("annotations", {}).get(ANNOTATION)
        return value

    def _status(self, pod: Mapping[str, Any]) -> Mapping[str, Any]:
        name = pod["metadata"]["name"]
        if name not in self.engines:
            self.engines[name] = self._spare.pop()
            self.engines[name].metrics = self.metrics
        # A router that follows the annotation at once, unless the test keeps it from it.
        self.router.engines[name] = ANNOTATION in pod["metadata"].get("annotations", {})
        self.router.engines[name] &= not self._routed
        state = resources.READY if self.ready else resources.loading()
        return {**state, "podIP": self.engines[name].address}

    def _ended(self, pod: Mapping[str, Any]) -> None:
        engine = self.engines.pop(pod["metadata"]["name"])
        self.router.engines.pop(pod["metadata"]["name"])
        if engine.running:
            self.cut.append(pod["metadata"]["name"])

    def _make_router(self) -> None:
        labels = {"serving.hypic.dev/cluster": "demo", "app.kubernetes.io/component": "router"}
        labels["app.kubernetes.io/managed-by"] = "hypic-operator"
        containers = [{"name": "router", "image": "r", "securityContext": _SECURITY}]
        security = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        spec = {"containers": containers, "securityContext": security}
        body = {"kind": "Pod", "metadata": {"name": "router", "labels": labels}, "spec": spec}
        self.namespace.create(body)
        status = {**resources.READY, "podIP": self.router.address}
        self.namespace.patch("Pod", "router", {"status": status}, sub="status")


_SECURITY = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
