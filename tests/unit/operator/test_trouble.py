from typing import Any

import pytest

from hypic_operator.core import trouble
from hypic_operator.core.trouble import Rank, Trouble

from ...support import resources


def _of(status: dict[str, Any]) -> Trouble | None:
    return trouble.of_pod({"metadata": {"name": "p"}, "status": status})


def test_a_ready_pod_has_none() -> None:
    assert _of(resources.READY) is None


PULL = 'Back-off pulling image "e:1": ErrImagePull: not found'
CASES = [
    (resources.waiting("ImagePullBackOff", PULL), "ImagePullBackOff", "engine:1: not found"),
    (resources.waiting("ErrImagePull", "not found"), "ImagePullBackOff", "engine:1: not found"),
    (resources.waiting("ErrImagePull"), "ImagePullBackOff", "gives no reason"),
    (resources.waiting("CreateContainerError", "no"), "CreateContainerError", "cannot start: no"),
    (resources.waiting("ContainerCreating"), "Starting", "is being started"),
    (resources.crashed(2, "a\nFlagError: --x\nbye\n"), "CrashLoopBackOff", ": FlagError: --x"),
    (resources.crashed(2, "one\ntwo\n"), "CrashLoopBackOff", "code 2, 3 restarts: two"),
    (resources.crashed(2, ""), "CrashLoopBackOff", "code 2, 3 restarts"),
    (resources.crashed(137, "", reason="OOMKilled"), "OOMKilled", "more memory than its limit"),
    (resources.loading(), "Loading", "is loading the model"),
    (resources.unschedulable("no GPU left"), "Unschedulable", "has no node: no GPU left"),
    ({"phase": "Failed", "reason": "Evicted", "message": "disk full"}, "Evicted", "disk full"),
    ({"phase": "Failed"}, "PodFailed", "PodFailed"),
    ({}, "Starting", "is being started"),
    ({"conditions": [{"type": "PodScheduled", "status": "False"}]}, "Unschedulable", "no reason"),
]


@pytest.mark.parametrize(("status", "reason", "words"), CASES)
def test_the_words_of_whoever_knows_are_told(
    status: dict[str, Any], reason: str, words: str
) -> None:
    found = _of(status)
    assert found is not None
    assert found.reason == reason
    assert words in found.message
    assert found.message.startswith("p ")


def test_both_wordings_of_a_failed_pull_are_one() -> None:
    assert _of(resources.waiting("ErrImagePull", "not found")) == _of(
        resources.waiting("ImagePullBackOff", PULL)
    )


def test_a_container_that_crashed_and_runs_again_is_still_told_as_crashing() -> None:
    status = resources.crashed(1, "boom")
    status["containerStatuses"][0]["state"] = {"running": {}}
    found = _of(status)
    assert found is not None
    assert found.reason == "CrashLoopBackOff"


def test_a_ready_container_of_a_pod_that_is_not_says_nothing() -> None:
    status = resources.loading()
    status["containerStatuses"][0]["ready"] = True
    found = _of(status)
    assert found is not None
    assert found.reason == "Starting"


def test_the_most_telling_one_wins() -> None:
    loading = Trouble("Loading", "", Rank.LOADING)
    crash = Trouble("CrashLoopBackOff", "", Rank.CRASH)
    assert trouble.worst((None, loading, crash, None)) is crash
    assert trouble.worst(()) is None
    assert crash.lasting
    assert not loading.lasting


def test_a_quota_is_told_apart_from_other_refusals() -> None:
    assert trouble.quota("exceeded quota: q", "s").reason == "QuotaExceeded"
    assert trouble.quota("denied by policy", "s").reason == "PodsRefused"


def test_a_message_has_an_end() -> None:
    found = _of(resources.unschedulable("x" * 10_000))
    assert found is not None
    assert len(found.message) < 500
