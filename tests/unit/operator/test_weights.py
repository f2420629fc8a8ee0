"""How the model's files reach an engine, for each source."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from hypic_operator.core import loading, names
from hypic_operator.core.api import HypicCluster
from hypic_operator.core.desired import engine
from hypic_operator.core.difference import Manifest

from ...support import resources
from ...support.apiserver import free_ports

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


HUB_SAYS = """
import time
class HfApi:
    def model_info(self, repo, *, revision, files_metadata, timeout):
        assert files_metadata
        return type("Info", (), {"siblings": [type("File", (), {"size": 200})()]})
def snapshot_download(repo, *, revision, local_dir):
    (local_dir / "sub").mkdir(parents=True)
    (local_dir / "sub" / "half").write_bytes(bytes(82))
    print("asked", repo, revision, flush=True)
    while not (local_dir / "enough").exists():
        time.sleep(0.02)
"""


def _download(folder: Path, hub: str, port: int = 0) -> subprocess.Popen[str]:
    """The container's command, with a hub that is a file of ours."""
    (download,) = _pod(_from({"huggingFace": HUB}))["initContainers"]
    (folder / "huggingface_hub.py").write_text(hub)
    told = {item["name"]: item["value"] for item in download["env"] if "value" in item}
    assert told["HYPIC_PORT"] == str(names.ENGINE_PORT)
    told |= {"HYPIC_FOLDER": str(folder / "model"), "PYTHONPATH": str(folder)}
    told["HYPIC_PORT"] = str(port)
    command = [sys.executable, *download["command"][1:]]
    return subprocess.Popen(command, env=told, stdout=subprocess.PIPE, text=True)


def _said(download: subprocess.Popen[str], line: str) -> None:
    assert download.stdout is not None
    assert line in iter(download.stdout.readline, "")


def test_a_download_says_how_far_it_is(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with _download(tmp_path, HUB_SAYS, port) as download:
        _said(download, "asked Qwen/Qwen3.5 main\n")
        with pytest.raises(HTTPError) as unready:
            urlopen(f"http://127.0.0.1:{port}/pic/ready", timeout=10)
        with unready.value as answer:
            told = loading.progress(json.load(answer), at=datetime.now(UTC))
        assert (unready.value.code, told and (told.stage, told.percent)) == (503, ("download", 41))
        (tmp_path / "model" / "enough").touch()
        _said(download, "Qwen/Qwen3.5 is complete\n")
    assert download.returncode == 0
    assert (tmp_path / "model" / ".hypic-complete").exists()


def test_what_is_complete_is_not_downloaded_again_dynamo_874(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / ".hypic-complete").touch()
    with _download(tmp_path, "raise AssertionError") as again:
        assert again.communicate(timeout=30) == ("Qwen/Qwen3.5 is there already\n", None)
    assert again.returncode == 0


def test_a_hub_that_does_not_tell_the_size_is_asked_for_the_model_all_the_same(
    tmp_path: Path,
) -> None:
    silent = HUB_SAYS.replace("assert files_metadata", "raise OSError('no such question')")
    with _download(tmp_path, silent) as download:
        _said(download, "The size of Qwen/Qwen3.5 is not known: no such question\n")
        _said(download, "asked Qwen/Qwen3.5 main\n")
        (tmp_path / "model" / "enough").touch()
        _said(download, "Qwen/Qwen3.5 is complete\n")
    assert download.returncode == 0
