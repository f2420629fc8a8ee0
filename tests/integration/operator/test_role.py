"""The HypicRole on a real API server: scaled as people and autoscalers do it."""

import subprocess
from typing import Any

from ...support import apiserver, resources
from ...support.playing import Namespace
from ...support.waiting import eventually
from .conftest import Operating

TWO = {"replicas": 2}


def _scale(namespace: Namespace, replicas: int) -> tuple[int, Any]:
    """What a HorizontalPodAutoscaler sends."""
    path = namespace.path("HypicRole", "demo-prefill", sub="scale")
    _, scale = namespace.server.request("GET", path)
    return namespace.server.request("PUT", path, {**scale, "spec": {"replicas": replicas}})


def _replicas(namespace: Namespace, kind: str = "StatefulSet") -> list[int]:
    listed = namespace.listed(kind, "serving.hypic.dev/cluster=demo")
    return [item["spec"]["replicas"] for item in listed]


def test_a_scaled_role_changes_the_set_and_is_written_once(
    namespace: Namespace, operating: Operating
) -> None:
    with operating() as operator:
        namespace.create(resources.manifest(prefill=TWO))
        namespace.bring_up("demo")
        assert _scale(namespace, 3)[0] == 200
        eventually(lambda: _replicas(namespace), until=lambda seen: seen == [3])
        operator.rest(namespace, "demo")
    role = namespace.get("HypicRole", "demo-prefill") or {}
    managers = {entry["manager"] for entry in role["metadata"]["managedFields"]}
    assert "hypic-operator" in managers
    assert role["spec"]["replicas"] == 3
    assert (namespace.get("HypicCluster", "demo") or {})["spec"]["prefill"]["replicas"] == 2


def test_the_scale_says_how_many_there_are_and_which(
    namespace: Namespace, operating: Operating
) -> None:
    with operating():
        namespace.create(resources.manifest(prefill=TWO))
        namespace.bring_up("demo")
        path = namespace.path("HypicRole", "demo-prefill", sub="scale")
        scale = eventually(
            lambda: namespace.server.request("GET", path)[1],
            until=lambda seen: seen["status"].get("replicas") == 2,
        )
    assert scale["spec"] == {"replicas": 2}
    found = namespace.listed("Pod", scale["status"]["selector"])
    assert len(found) == 2


def test_a_sync_that_names_the_same_number_does_not_undo_the_scaler_aibrix_1661(
    namespace: Namespace, operating: Operating
) -> None:
    with operating() as operator:
        namespace.create(resources.manifest(prefill=TWO))
        namespace.bring_up("demo")
        _scale(namespace, 3)
        eventually(lambda: _replicas(namespace), until=lambda seen: seen == [3])
        namespace.patch("HypicCluster", "demo", {"spec": {"prefill": TWO}})
        operator.look(namespace, "demo")
        assert _replicas(namespace) == [3]
        namespace.patch("HypicCluster", "demo", {"spec": {"prefill": {"replicas": 1}}})
        eventually(lambda: _replicas(namespace), until=lambda seen: seen == [1])
        assert _replicas(namespace, "HypicRole") == [1]


def test_no_scaler_can_ask_for_nothing(namespace: Namespace, operating: Operating) -> None:
    with operating():
        namespace.create(resources.manifest())
        namespace.bring_up("demo")
        assert _scale(namespace, 0)[0] == 200
        eventually(lambda: _replicas(namespace, "HypicRole"), until=lambda seen: seen == [1])
        assert _replicas(namespace) == [1]
        assert _scale(namespace, -1)[0] == 422


def test_kubectl_scales_and_shows_a_role(namespace: Namespace, operating: Operating) -> None:
    with operating():
        namespace.create(resources.manifest(prefill=TWO))
        namespace.bring_up("demo")
        _kubectl(namespace, "scale", "hypicrole", "demo-prefill", "--replicas", "4")
        eventually(lambda: _replicas(namespace), until=lambda seen: seen == [4])
        shown = _kubectl(namespace, "get", "hypicroles").splitlines()
    assert shown[0].split() == ["NAME", "CLUSTER", "ROLE", "DESIRED", "CURRENT", "READY", "AGE"]
    assert shown[1].split()[:6] == ["demo-prefill", "demo", "prefill", "4", "2", "2"]


def _kubectl(namespace: Namespace, *arguments: str) -> str:
    kubeconfig = str(namespace.server.kubeconfig())
    command = [str(apiserver.tool("kubectl")), "--kubeconfig", kubeconfig, "-n", namespace.name]
    environment = {"HOME": str(namespace.server.folder), "PATH": ""}
    done = subprocess.run(
        [*command, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
