from typing import Any

import pytest

from hypic_operator.core import trouble, unready
from hypic_operator.core.trouble import Rank, Trouble

from ...support import resources


def _of(status: dict[str, Any]) -> Trouble | None:
    return unready.of_pod({"metadata": {"name": "p"}, "status": status})


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
    (resources.crashed(137, ""), "CrashLoopBackOff", "`kubectl describe pod` says by whom"),
    (resources.crashed(137, "", reason="OOMKilled"), "OOMKilled", "more memory than its limit"),
    (resources.loading(), "Loading", "is loading the model"),
    (resources.unschedulable("no GPU left"), "Unschedulable", "has no node: no GPU left"),
    (resources.silent(), "NotAnswering", "deleting the pod starts another"),
    (resources.silent("router"), "NotAnswering", "does not answer its readiness check any more"),
    (resources.loading("router", started=True), "Starting", "does not take requests yet"),
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


def test_a_container_that_crashed_and_runs_again_is_still_told_as_crashing_kaito_931() -> None:
    status = resources.crashed(1, "boom")
    status["containerStatuses"][0]["state"] = {"running": {}}
    found = _of(status)
    assert found is not None
    assert found.reason == "CrashLoopBackOff"


def test_a_pod_that_crashed_once_and_falls_silent_later_is_told_as_silent() -> None:
    status = resources.silent()
    status["containerStatuses"][0]["lastState"] = {"terminated": {"exitCode": 1}}
    found = _of(status)
    assert found is not None
    assert found.reason == "NotAnswering"
    assert found.lasting


def test_an_engine_between_its_start_and_its_first_check_alarms_nobody() -> None:
    found = _of(resources.loading(started=True))
    assert found is not None
    assert found.reason == "Loading"
    assert "has loaded the model" in found.message
    assert not found.lasting


def test_time_is_measured_from_the_start_of_the_container_that_runs() -> None:
    status = resources.silent()
    status["conditions"][1]["lastTransitionTime"] = "2025-12-31T23:59:59Z"
    found = _of(status)
    assert found is not None
    assert found.reason == "Loading"


@pytest.mark.parametrize(
    ("container", "advice"),
    [
        (
            "engine",
            "raise prefill.template.engine.resources.limits.memory or lower --max-total-tokens",
        ),
        ("router", "raise router.replicas"),
    ],
)
def test_too_little_memory_says_what_to_raise(container: str, advice: str) -> None:
    status = resources.crashed(137, "", reason="OOMKilled")
    status["containerStatuses"][0]["name"] = container
    found = _of(status)
    assert found is not None
    assert advice in found.message


def test_an_evicted_engine_says_what_to_raise() -> None:
    words = "The node was low on resource: memory."
    found = _of({"phase": "Failed", "reason": "Evicted", "message": words})
    assert found is not None
    assert words in found.message
    assert "raise prefill.template.engine.resources.requests" in found.message


def test_a_claim_that_is_missing_is_named_with_the_fields_that_name_it_kthena_1220() -> None:
    scheduler = (
        '0/1 nodes are available: persistentvolumeclaim "hypic-models" not found. '
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    found = _of(resources.unschedulable(scheduler))
    assert found is not None
    assert found.reason == "ClaimNotFound"
    assert found.lasting
    assert found.message == (
        "p waits for PersistentVolumeClaim hypic-models, which its namespace does not have; "
        "create it, or correct the claimName in model.source.pvc or prefill.template.volumes"
    )


def test_a_claim_without_a_volume_says_where_to_look() -> None:
    scheduler = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    found = _of(resources.unschedulable(scheduler))
    assert found is not None
    assert found.reason == "ClaimNotBound"
    assert "`kubectl describe pvc`" in found.message


def test_a_folder_that_the_claim_lacks_names_the_field() -> None:
    kubelet = 'failed to create subPath directory for volumeMount "model" of container "engine"'
    found = _of(resources.waiting("CreateContainerConfigError", kubelet))
    assert found is not None
    assert kubelet in found.message
    assert "model.source.pvc.path" in found.message


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


def test_a_pod_whose_node_is_lost_says_which() -> None:
    conditions = [{"type": "Ready", "status": "False"}]
    status = {**resources.READY, "conditions": conditions}
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "gpu-7"}, "status": status}
    found = unready.of_pod(pod)
    assert found is not None
    assert (found.reason, found.lasting) == ("NodeLost", True)
    assert "kubectl delete node gpu-7" in found.message


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ('MountVolume.SetUp failed for volume "keys": secret "k" not found', "VolumeNotMounted"),
        ("failed to create pod network sandbox: no addresses left", "SandboxNotCreated"),
    ],
)
def test_what_a_kubelet_says_in_an_event_is_told(words: str, reason: str) -> None:
    found = trouble.held(words, "demo-0")
    assert (found.reason, found.message) == (reason, f"demo-0 cannot start: {words}")
    assert found.lasting
