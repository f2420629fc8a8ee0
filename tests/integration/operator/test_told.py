"""What keeps a cluster from running is told in the words of who knows, on a real API server."""

import time

from hypic_operator.pods.loads import PERIOD_S

from ...support import resources
from ...support.fleet import Fleet
from ...support.playing import Namespace
from ...support.waiting import eventually
from .conftest import Operating


def test_the_pods_own_words_reach_the_status_kthena_1503(
    namespace: Namespace, operating: Operating
) -> None:
    with operating():
        namespace.create(resources.manifest())
        (made,) = eventually(lambda: namespace.sets("demo"))
        namespace.play_pods(made, resources.unschedulable("0/3 nodes: 3 Insufficient cpu."))
        found = namespace.until("demo", "PrefillReady", "False", "Unschedulable")
        assert "3 Insufficient cpu" in found["message"]
        namespace.play_pods(made, resources.waiting("ErrImagePull", "no such image"))
        found = namespace.until("demo", "Ready", "False", "ImagePullBackOff")
        assert "no such image" in found["message"]
        trace = "Traceback:\n  line 1\nSettingsError: --pic-seam: must not be negative\n"
        namespace.play_pods(made, resources.crashed(1, trace))
        found = namespace.until("demo", "Ready", "False", "CrashLoopBackOff")
        assert "SettingsError: --pic-seam: must not be negative" in found["message"]
        namespace.play_pods(made, resources.loading())
        namespace.until("demo", "ModelReady", "False", "Loading")
        namespace.play_pods(made, resources.READY)
        namespace.play_router("demo", ready=2)
        namespace.until("demo", "Ready", "True")
        namespace.play_pods(made, resources.crashed(137, "", reason="OOMKilled"))
        found = namespace.until("demo", "Ready", "False", "OOMKilled")
        assert "resources.limits.memory" in found["message"]
        namespace.play_pods(made, resources.silent())
        found = namespace.until("demo", "Ready", "False", "NotAnswering")
        assert "deleting the pod starts another" in found["message"]


def test_how_far_an_engine_is_with_the_model_is_told_as_it_goes_on(
    namespace: Namespace, operating: Operating
) -> None:
    fleet = Fleet(namespace)
    fleet.ready = False
    with operating() as operator, fleet.running():
        namespace.create(resources.manifest())
        namespace.until("demo", "ModelReady", "False", "Loading")
        (engine,) = eventually(lambda: list(fleet.engines.values()))
        for percent in (12, 41):
            engine.loading = {"stage": "weights", "percent": percent}
            eventually(
                lambda: namespace.condition("demo", "Ready")["message"],
                until=lambda said: f"{percent} % of the weights are read" in said,  # noqa: B023
            )
        assert "at this pace all of it is there about" in _message(namespace)
        written = operator.writes
        before_s = time.monotonic()
        eventually(lambda: time.monotonic() - before_s > 2 * PERIOD_S)
        assert operator.writes == written
        events = [item["reason"] for item in namespace.listed("Event")]
        assert events.count("Loading") == 1
        fleet.ready = True
        namespace.until("demo", "Ready", "True")


def _message(namespace: Namespace) -> str:
    found: str = namespace.condition("demo", "ModelReady")["message"]
    return found


def test_a_quota_that_forbids_pods_is_told_kaito_344(
    namespace: Namespace, operating: Operating
) -> None:
    with operating():
        namespace.create(resources.manifest())
        (made,) = eventually(lambda: namespace.sets("demo"))
        words = 'pods "demo-0" is forbidden: exceeded quota: small, requested: pods=1'
        about = {"kind": "StatefulSet", "name": made["metadata"]["name"]}
        about["namespace"] = namespace.name
        event = {
            "kind": "Event",
            "metadata": {"name": "e1"},
            "involvedObject": about,
            "type": "Warning",
            "reason": "FailedCreate",
            "message": words,
            "lastTimestamp": "2026-01-01T00:00:00Z",
        }
        namespace.create(event)
        found = namespace.until("demo", "PrefillReady", "False", "QuotaExceeded")
    assert "exceeded quota: small" in found["message"]


def test_a_volume_that_cannot_be_mounted_is_told_in_the_kubelets_words(
    namespace: Namespace, operating: Operating
) -> None:
    with operating():
        namespace.create(resources.manifest())
        (made,) = eventually(lambda: namespace.sets("demo"))
        (pod,) = namespace.play_pods(made, resources.waiting("ContainerCreating"))
        event = {
            "kind": "Event",
            "metadata": {"name": "e2"},
            "involvedObject": {"kind": "Pod", "name": pod, "namespace": namespace.name},
            "type": "Warning",
            "reason": "FailedMount",
            "message": 'MountVolume.SetUp failed for volume "keys": secret "k" not found',
            "lastTimestamp": "2026-01-01T00:00:00Z",
        }
        namespace.create(event)
        found = namespace.until("demo", "PrefillReady", "False", "VolumeNotMounted")
    assert 'secret "k" not found' in found["message"]


def test_a_spec_that_cannot_be_carried_out_is_a_condition_and_mending_it_goes_on(
    namespace: Namespace, operating: Operating
) -> None:
    with operating():
        args = {"template": {"engine": {"extraArgs": ["--port=1"]}}}
        namespace.create(resources.manifest(prefill=args))
        found = namespace.until("demo", "PrefillReady", "False", "OwnedArgument")
        assert "--port" in found["message"]
        assert namespace.children("demo") == []
        mended = {"spec": {"prefill": {"template": {"engine": {"extraArgs": None}}}}}
        namespace.patch("HypicCluster", "demo", mended)
        namespace.bring_up("demo")


def test_what_the_api_server_refuses_is_told_in_its_words(
    namespace: Namespace, operating: Operating
) -> None:
    template = {"tolerations": [{"key": "a", "operator": "Sometimes"}]}
    with operating():
        namespace.create(resources.manifest(prefill={"template": template}))
        found = namespace.until("demo", "PrefillReady", "False", "Invalid")
        assert "Sometimes" in found["message"]
        namespace.patch("HypicCluster", "demo", {"spec": {"prefill": {"template": None}}})
        namespace.bring_up("demo")
