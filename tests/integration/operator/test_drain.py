"""An engine goes only when its streams have ended; engines and routers are played over HTTP."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from hypic_operator.core.drain import LOOK_AGAIN_S

from ...support import resources
from ...support.fleet import ANNOTATION, Fleet
from ...support.playing import Namespace
from ...support.waiting import eventually
from .conftest import Operating


def _engine_pods(fleet: Fleet) -> list[str]:
    return sorted(fleet.engines)


def _replicas(namespace: Namespace, number: int) -> None:
    namespace.patch("HypicCluster", "demo", {"spec": {"prefill": {"replicas": number}}})


@contextmanager
def two_engines(
    namespace: Namespace, operating: Operating, *, routed: bool = False
) -> Iterator[Fleet]:
    """A HypicCluster that is ready with two engines, while an operator runs."""
    with operating(), Fleet(namespace, routed=routed).running() as fleet:
        namespace.create(resources.manifest(prefill={"replicas": 2}))
        namespace.until("demo", "Ready", "True")
        yield fleet


def test_a_scale_down_waits_for_the_stream_that_the_last_engine_answers_dynamo_13559(
    namespace: Namespace, operating: Operating
) -> None:
    with two_engines(namespace, operating) as fleet:
        first, last = _engine_pods(fleet)
        engine = fleet.engines[last]
        engine.running = 2
        begun_s = time.monotonic()
        _replicas(namespace, 1)
        told, *_ = eventually(lambda: list(engine.told))
        verb, left_s = told.split()
        assert verb == "POST"
        assert 59 - (time.monotonic() - begun_s) <= int(left_s) <= 60
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


def test_a_scale_down_that_is_taken_back_makes_the_engine_routable_again_aibrix_2413(
    namespace: Namespace, operating: Operating
) -> None:
    with two_engines(namespace, operating) as fleet:
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
    with two_engines(namespace, operating, routed=True) as fleet:
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


def test_an_operator_whose_clock_jumped_ahead_cuts_no_stream(
    namespace: Namespace, operating: Operating
) -> None:
    with two_engines(namespace, operating) as fleet:
        _, last = _engine_pods(fleet)
        engine = fleet.engines[last]
        engine.running, engine.left_s = 1, 50.0
        _replicas(namespace, 1)
        eventually(lambda: engine.draining)
        past = (datetime.now(UTC) - timedelta(hours=1)).isoformat(timespec="seconds")
        namespace.patch("Pod", last, {"metadata": {"annotations": {ANNOTATION: past}}})
        time.sleep(3 * LOOK_AGAIN_S)
        assert (last in fleet.engines, fleet.annotation(last)) == (True, past)
        engine.left_s = 0.0
        eventually(lambda: fleet.cut, until=lambda cut: cut == [last])


def test_a_roll_ends_no_stream_and_takes_every_old_engine_kthena_1589(
    namespace: Namespace, operating: Operating
) -> None:
    with two_engines(namespace, operating) as fleet:
        first, last = _engine_pods(fleet)
        old = {name: fleet.engines[name] for name in (first, last)}
        for engine in old.values():
            engine.running = 1
        namespace.patch("HypicCluster", "demo", {"spec": {"pic": {"seam": "16"}}})
        eventually(lambda: old[last].draining)
        namespace.until("demo", "Progressing", "True", "Starting")
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
