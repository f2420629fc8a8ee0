"""When something is in the way that does not end by itself."""

from dataclasses import replace
from typing import Any

from hypic_operator.core.facts import Condition
from hypic_operator.core.serving import Record

from ...support import resources
from ...support.facts import NONE
from ...support.facts import conditions as _conditions
from ...support.facts import facts as _facts
from ...support.facts import pods as _pods
from ...support.facts import whole as _whole


def test_what_somebody_must_mend_is_degraded_and_what_ends_by_itself_is_not() -> None:
    cluster = resources.cluster(prefill={"replicas": 2})

    def degraded(*pods: Any) -> Condition:
        return _conditions(_facts(cluster, _whole(cluster, pods=_pods(cluster, *pods))))["Degraded"]

    assert degraded(resources.READY, resources.loading()) == Condition(
        "Degraded", "False", "NothingBroken", "nothing waits for anybody to act"
    )
    found = degraded(resources.READY, resources.crashed(1, "ModelError: no config.json"))
    assert (found.status, found.reason) == ("True", "CrashLoopBackOff")
    assert found.message.startswith("tokens come back, but PrefillReady: 1 of 2 engines are ready")
    found = degraded(resources.crashed(1, "boom"), resources.crashed(1, "boom"))
    assert found.message.startswith("ModelReady: ")


def test_one_request_that_failed_is_not_degraded_and_two_are() -> None:
    cluster = resources.cluster()
    record = Record()
    for state in ("False", "True"):
        record = record.with_answer(NONE, now_s=1.0, ready=frozenset())
        found = _conditions(_facts(cluster, _whole(cluster), record=record))
        assert (found["Serving"].status, found["Degraded"].status) == ("False", state)


def test_a_roll_that_makes_its_own_room_is_not_degraded() -> None:
    cluster = resources.cluster()
    full = resources.unschedulable("0/1 nodes are available: 1 Insufficient cpu.")
    facts = _facts(cluster, _whole(cluster, pods=_pods(cluster, full)))
    assert _conditions(facts)["Degraded"].reason == "Unschedulable"
    making = replace(facts.plan.roll, crowded="no room")
    facts = replace(facts, plan=replace(facts.plan, roll=making))
    assert _conditions(facts)["Degraded"].status == "False"
