"""How the model's files reach an engine, for each source."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hypic_operator.core.api import HypicCluster
from hypic_operator.core.desired import engine
from hypic_operator.core.difference import Manifest

from ...support import resources

HUB = {"repo": "Qwen/Qwen3.5", "tokenSecretRef": {"name": "hub", "key": "read"}}


def _from(source: dict[str, Any], **spec: Any) -> HypicCluster:
    return resources.cluster(model={"name": "Qwen/m", "source": source}, **spec)


def _pod(cluster: HypicCluster) -> Manifest:
    made = engine.stateful_set(cluster, "prefill", resources.POLICY, image="e:1", replicas=1)
    found: Manifest = made["spec"]["template"]["spec"]
    return found


def _model(pod: Manifest) -> tuple[Any, Any]:
    """The volume and the mount of the engine."""
    (volume,) = (item for item in pod["volumes"] if item["name"] == "model")
    mounts = pod["containers"][0]["volumeMounts"]
    (mount,) = (item for item in mounts if item["name"] == "model")
    return {key: value for key, value in volume.items() if key != "name"}, mount


@pytest.mark.parametrize(
    ("source", "volume", "path"),
    [
        (
            {"pvc": {"claimName": "c", "path": "a/b/"}},
            {"persistentVolumeClaim": {"claimName": "c", "readOnly": True}},
            "a/b",
        ),
        ({"hostPath": {"path": "/m"}}, {"hostPath": {"path": "/m", "type": "Directory"}}, None),
        ({"image": {"reference": "r@1"}}, {"image": {"reference": "r@1"}}, None),
        (
            {"image": {"reference": "r@1", "path": "a", "pullPolicy": "Never"}},
            {"image": {"reference": "r@1", "pullPolicy": "Never"}},
            "a",
        ),
    ],
)
def test_a_source_that_is_there_is_mounted_and_nothing_is_downloaded(
    source: dict[str, Any], volume: dict[str, Any], path: str | None
) -> None:
    pod = _pod(_from(source))
    assert "initContainers" not in pod
    found, mount = _model(pod)
    assert found == volume
    assert (mount["mountPath"], mount["readOnly"]) == ("/models/Qwen/m", True)
    assert mount.get("subPath") == path


def test_a_download_ends_where_the_engine_looks() -> None:
    pod = _pod(_from({"huggingFace": HUB}))
    (download,) = pod["initContainers"]
    environment = {item["name"]: item.get("value") for item in download["env"]}
    volume, mount = _model(pod)
    assert volume == {"emptyDir": {}}
    (cache,) = (item for item in download["volumeMounts"] if item["name"] == "model")
    assert environment["HYPIC_FOLDER"] == f"{cache['mountPath']}/{mount['subPath']}"
    assert (environment["HYPIC_REPO"], environment["HYPIC_REVISION"]) == ("Qwen/Qwen3.5", "main")
    assert download["image"] == "e:1"


def test_only_the_download_sees_the_token_and_only_by_reference_kserve_4400() -> None:
    pod = _pod(_from({"huggingFace": HUB}))
    token = {"secretKeyRef": {"name": "hub", "key": "read"}}
    assert {"name": "HF_TOKEN", "valueFrom": token} in pod["initContainers"][0]["env"]
    assert "HF_TOKEN" not in str(pod["containers"])


@pytest.mark.parametrize(
    ("cache", "volume"),
    [
        ({"pvc": {"claimName": "c"}}, {"persistentVolumeClaim": {"claimName": "c"}}),
        ({"node": {"path": "/var/m"}}, {"hostPath": {"path": "/var/m", "type": "Directory"}}),
    ],
)
def test_a_cache_keeps_each_revision_of_a_repository_apart(
    cache: dict[str, Any], volume: dict[str, Any]
) -> None:
    found = {}
    for revision in ("main", "refs/pr/1"):
        cluster = _from({"huggingFace": {**HUB, "revision": revision}}, modelCache=cache)
        at, mount = _model(_pod(cluster))
        assert at == volume
        found[revision] = mount["subPath"]
    assert found == {"main": "Qwen--Qwen3.5--main", "refs/pr/1": "Qwen--Qwen3.5--refs--pr--1"}


def test_a_shared_cache_can_be_written_by_its_pods() -> None:
    cluster = _from({"huggingFace": HUB}, modelCache={"pvc": {"claimName": "c"}})
    security = _pod(cluster)["securityContext"]
    assert security["fsGroup"] == security["runAsUser"]
    assert "fsGroup" not in _pod(_from({"huggingFace": HUB}))["securityContext"]


def test_a_download_has_what_the_user_gave_the_engine() -> None:
    proxy = {"name": "HTTPS_PROXY", "value": "http://proxy.example.test:3128"}
    mount = {"name": "ca", "mountPath": "/ca"}
    template = {"engine": {"env": [proxy], "volumeMounts": [mount]}}
    (download,) = _pod(_from({"huggingFace": HUB}, prefill={"template": template}))[
        "initContainers"
    ]
    assert proxy in download["env"]
    assert mount in download["volumeMounts"]


def test_another_token_makes_no_new_revision_and_another_commit_does() -> None:
    def revision(**changed: Any) -> str:
        return engine.revision(_from({"huggingFace": {**HUB, **changed}}))

    assert revision(tokenSecretRef={"name": "other"}) == revision()
    assert revision(revision="abc") != revision()


def test_what_is_complete_is_not_downloaded_again_dynamo_874(tmp_path: Path) -> None:
    (download,) = _pod(_from({"huggingFace": HUB}))["initContainers"]
    hub = ["def snapshot_download(*_, local_dir, **__):", " local_dir.mkdir()", " print('asked')"]
    (tmp_path / "huggingface_hub.py").write_text("\n".join(hub))
    told = {item["name"]: item["value"] for item in download["env"] if "value" in item}
    told |= {"HYPIC_FOLDER": str(tmp_path / "model"), "PYTHONPATH": str(tmp_path)}
    said = [
        subprocess.run(
            [sys.executable, *download["command"][1:]],
            env=told,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert "asked" in said[0]
    assert said[1] == "Qwen/Qwen3.5 is there already\n"
