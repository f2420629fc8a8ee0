"""The operator scales by what routers and engines count; both are played over HTTP."""

from typing import Any

from ...support import resources
from ...support.fleet import Fleet
from ...support.playing import Namespace
from ...support.waiting import eventually
from .conftest import Operating

OFTEN: dict[str, Any] = {"scale_period_s": 0.3}


def _scaled(**scaling: Any) -> dict[str, Any]:
    return resources.manifest(prefill={"replicas": 1, "scaling": {"max": 3, **scaling}})


def _number(namespace: Namespace) -> int:
    role = namespace.get("HypicRole", "demo-prefill") or {}
    return int(role["spec"]["replicas"])


def _events(namespace: Namespace) -> dict[str, str]:
    return {item["reason"]: item["message"] for item in namespace.listed("Event")}


def test_load_brings_engines_and_calm_takes_them_away(
    namespace: Namespace, operating: Operating
) -> None:
    with operating(**OFTEN), Fleet(namespace).running() as fleet:
        namespace.create(_scaled(calmSeconds=2))
        namespace.until("demo", "Ready", "True")
        namespace.until("demo", "ScalingReady", "True", "Scaling")
        fleet.router.requests = 20
        eventually(lambda: _number(namespace), until=(3).__eq__)
        assert (
            _events(namespace)["ScaledUp"] == "Scaled prefill from 1 to 3: 20 requests, 8 an engine"
        )
        eventually(lambda: len(fleet.engines), until=(3).__eq__)
        fleet.router.requests = 0
        eventually(lambda: len(fleet.engines), until=(1).__eq__)
        assert fleet.cut == []


def test_without_data_the_number_stays_and_the_status_says_why(
    namespace: Namespace, operating: Operating
) -> None:
    with operating(**OFTEN), Fleet(namespace).running() as fleet:
        namespace.create(_scaled(calmSeconds=1))
        namespace.until("demo", "Ready", "True")
        fleet.router.requests = 10
        eventually(lambda: _number(namespace), until=(2).__eq__)
        fleet.router.answers = False
        fleet.router.requests = 0
        found = namespace.until("demo", "ScalingReady", "False", "NoMetrics")
        assert "prefill keeps its 2 engines" in found["message"]
        assert _number(namespace) == 2
        fleet.router.answers = True
        eventually(lambda: _number(namespace), until=(1).__eq__)
        namespace.until("demo", "ScalingReady", "True")


def test_engines_sleep_while_nobody_asks_and_a_held_request_wakes_them(
    namespace: Namespace, operating: Operating
) -> None:
    with operating(**OFTEN), Fleet(namespace).running() as fleet:
        namespace.create(_scaled(min=0, calmSeconds=0, idleSeconds=10))
        namespace.until("demo", "Ready", "True")
        eventually(lambda: _number(namespace), until=(0).__eq__, within_s=40)
        namespace.until("demo", "Ready", "True", "Asleep")
        assert namespace.condition("demo", "Serving")["status"] == "True"
        eventually(lambda: not fleet.engines)
        fleet.router.held = 1
        eventually(lambda: fleet.engines)
        fleet.router.held = 0
        namespace.until("demo", "Ready", "True", "Serving")
        assert _events(namespace)["Woken"].startswith("Scaled prefill from 0 to 1: 1 request")


def test_what_caches_hold_and_were_good_for_is_in_the_status(
    namespace: Namespace, operating: Operating
) -> None:
    counted = """
hypic_engine_prompt_tokens_total{source="reused"} 750
hypic_engine_prompt_tokens_total{source="computed"} 200
hypic_engine_prompt_tokens_total{source="recomputed"} 50
hypic_engine_segments{tier="device"} 12
hypic_engine_bytes{pool="keys"} 3145728
hypic_engine_bytes{pool="states"} 1048576
"""
    with Fleet(namespace).running() as fleet:
        fleet.metrics = counted
        with operating(**OFTEN):
            namespace.create(resources.manifest())
            namespace.until("demo", "Ready", "True")
            status = eventually(
                lambda: (namespace.get("HypicCluster", "demo") or {})["status"],
                until=lambda seen: "cache" in seen,
            )
    assert status["cache"] == {"hitRatio": "75 %", "segments": 12, "memory": "4Mi"}
