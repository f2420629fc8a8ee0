"""An engine goes only when its streams have ended; engines and routers are played over HTTP."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from ...support import resources
from ...support.controllers import Controllers
from ...support.draining import PlayedEngine, PlayedRouter, listening
from ...support.playing import Namespace
from ...support.waiting import eventually
from .conftest import Operating

ANNOTATION = "serving.hypic.dev/drain"


class Fleet:
    """Engines by the names of their pods, one router, and the controllers that run them."""

    def __init__(self, namespace: Namespace, *, routed: bool = False) -> None:
        self.namespace = namespace
        self.router = PlayedRouter()
        self.engines: dict[str, PlayedEngine] = {}
        self.cut: list[str] = []
        self.ready = True
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
        if name.startswith("router"):
            return {**resources.READY, "podIP": self.router.address}
        if name not in self.engines:
            self.engines[name] = self._spare.pop()
        # A router that follows the annotation at once, unless the test keeps it from it.
        self.router.engines[name] = ANNOTATION in pod["metadata"].get("annotations", {})
        self.router.engines[name] &= not self._routed
        state = resources.READY if self.ready else resources.loading()
        return {**state, "podIP": self.engines[name].address}

    def _ended(self, pod: Mapping[str, Any]) -> None:
        engine = self.engines.pop(pod["metadata"]["name"])
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


def _engine_pods(fleet: Fleet) -> list[str]:
    return sorted(fleet.engines)


def _replicas(namespace: Namespace, number: int) -> None:
    namespace.patch("HypicCluster", "demo", {"spec": {"prefill": {"replicas": number}}})


def test_a_scale_down_waits_for_the_stream_that_the_last_engine_answers(
    namespace: Namespace, operating: Operating
) -> None:
    with operating(), Fleet(namespace).running() as fleet:
        namespace.create(resources.manifest(prefill={"replicas": 2}))
        namespace.until("demo", "Ready", "True")
        first, last = _engine_pods(fleet)
        engine = fleet.engines[last]
        engine.running = 2
        _replicas(namespace, 1)
        eventually(
            lambda: engine.told, until=lambda told: bool(told) and told[0] in {"POST 59", "POST 60"}
        )
        found = namespace.until("demo", "Progressing", "True", "Draining")
        assert f"{last}: 2 streams, oldest 41 s" in found["message"]
        status = (namespace.get("HypicCluster", "demo") or {})["status"]
        assert status["prefill"]["draining"] == 1
        (made,) = namespace.sets("demo")
        assert made["spec"]["replicas"] == 2
        engine.running = 0
        eventually(lambda: _engine_pods(fleet), until=lambda seen: seen == [first])
        namespace.until("demo", "Progressing", "False", "Settled")
        events = [item["reason"] for item in namespace.listed("Event")]
        assert fleet.cut == []
    assert events.count("DrainStarted") == 1
    assert events.count("Drained") == 1


def test_a_scale_down_that_is_taken_back_makes_the_engine_routable_again(
    namespace: Namespace, operating: Operating
) -> None:
    with operating(), Fleet(namespace).running() as fleet:
        namespace.create(resources.manifest(prefill={"replicas": 2}))
        namespace.until("demo", "Ready", "True")
        _, last = _engine_pods(fleet)
        engine = fleet.engines[last]
        engine.running = 1
        _replicas(namespace, 1)
        eventually(lambda: engine.draining)
        _replicas(namespace, 2)
        eventually(lambda: fleet.annotation(last) is None)
        assert [said.split()[0] for said in engine.told] == ["POST", "DELETE"]
        assert not engine.draining
        namespace.until("demo", "Progressing", "False", "Settled")
        assert len(fleet.engines) == 2
        assert fleet.cut == []


def test_a_router_that_goes_on_choosing_is_waited_for_five_seconds(
    namespace: Namespace, operating: Operating
) -> None:
    with operating(), Fleet(namespace, routed=True).running() as fleet:
        namespace.create(resources.manifest(prefill={"replicas": 2}))
        namespace.until("demo", "Ready", "True")
        engine = fleet.engines[_engine_pods(fleet)[1]]
        engine.running = 1
        _replicas(namespace, 1)
        eventually(lambda: engine.told)
        (told,) = engine.told
        assert 50 <= float(told.split()[1]) <= 55


def test_a_stream_that_outlasts_the_deadline_is_cut_and_told(
    namespace: Namespace, operating: Operating
) -> None:
    with operating(), Fleet(namespace).running() as fleet:
        spec = {"prefill": {"replicas": 2}, "drain": {"timeoutSeconds": 3}}
        namespace.create(resources.manifest(**spec))
        namespace.until("demo", "Ready", "True")
        _, last = _engine_pods(fleet)
        fleet.engines[last].running = 1
        _replicas(namespace, 1)
        eventually(lambda: fleet.cut, until=lambda cut: cut == [last])
        (event,) = eventually(
            lambda: [e for e in namespace.listed("Event") if e["reason"] == "DrainTimedOut"]
        )
        assert event["type"] == "Warning"
        assert "1 stream, oldest 41 s left" in event["message"]


def test_a_roll_ends_no_stream_and_takes_old_engines_one_by_one(
    namespace: Namespace, operating: Operating
) -> None:
    with operating(), Fleet(namespace).running() as fleet:
        namespace.create(resources.manifest(prefill={"replicas": 2}))
        namespace.until("demo", "Ready", "True")
        first, last = _engine_pods(fleet)
        old = {name: fleet.engines[name] for name in (first, last)}
        for engine in old.values():
            engine.running = 1
        namespace.patch("HypicCluster", "demo", {"spec": {"pic": {"seam": "16"}}})
        eventually(lambda: old[last].draining)
        found = namespace.until("demo", "Progressing", "True", "Starting")
        assert not old[first].draining or found
        old[last].running = 0
        eventually(lambda: old[first].draining)
        old[first].running = 0
        namespace.until("demo", "Progressing", "False", "Settled")
        assert fleet.cut == []
        assert len(fleet.engines) == 2


def test_an_operator_that_comes_back_goes_on_with_the_drain(
    namespace: Namespace, operating: Operating
) -> None:
    with Fleet(namespace).running() as fleet:
        with operating():
            namespace.create(resources.manifest(prefill={"replicas": 2}))
            namespace.until("demo", "Ready", "True")
            _, last = _engine_pods(fleet)
            engine = fleet.engines[last]
            engine.running = 1
            _replicas(namespace, 1)
            eventually(lambda: engine.draining)
        deadline = fleet.annotation(last)
        assert deadline is not None
        left = datetime.fromisoformat(deadline) - datetime.now(UTC)
        assert timedelta() < left <= timedelta(seconds=60)
        with operating():
            engine.running = 0
            eventually(lambda: len(fleet.engines) == 1)
            assert len(engine.told) == 1
            assert fleet.cut == []
