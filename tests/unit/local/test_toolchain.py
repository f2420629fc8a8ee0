import json
import subprocess
from pathlib import Path

import pytest

from local import toolchain
from local.errors import RefusedError
from local.settings import Settings


@pytest.mark.parametrize("module", toolchain.MODULES, ids=lambda module: module.folder)
def test_every_go_mod_pins_its_module_and_names_its_programs(module: toolchain.GoModule) -> None:
    text = (toolchain.TOOLS / module.folder / "go.mod").read_text()
    assert toolchain.version_of(text, module.module).startswith("v")
    for package in module.programs.values():
        assert package in text


@pytest.mark.parametrize("module", toolchain.MODULES, ids=lambda module: module.folder)
def test_every_go_mod_is_read_by_go(module: toolchain.GoModule) -> None:
    go = toolchain.find_go()
    shown = subprocess.run(
        [go, "mod", "edit", "-json"],
        cwd=toolchain.TOOLS / module.folder,
        capture_output=True,
        check=True,
    )
    tools = {tool["Path"] for tool in json.loads(shown.stdout)["Tool"]}
    assert tools == set(module.programs.values())


def test_kubernetes_tells_the_version_it_was_built_from() -> None:
    flags = toolchain.link_flags("k8s.io/kubernetes", "v1.34.4", kubernetes="v1.34.4")
    assert "-X k8s.io/component-base/version.gitVersion=v1.34.4" in flags
    assert "-X k8s.io/client-go/pkg/version.gitMinor=34" in flags


def test_helm_takes_a_cluster_it_does_not_ask_to_be_the_one_that_runs_here() -> None:
    flags = toolchain.link_flags("helm.sh/helm/v3", "v3.22.0", kubernetes="v1.34.4")
    assert "-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=34" in flags
    assert "-X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor=34" in flags


def test_helm_is_built_anew_for_another_kubernetes_and_etcd_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = Settings(cache=Path("/nonexistent"))
    helm, etcd = toolchain.BUILT_BY["helm"], toolchain.BUILT_BY["etcd"]
    before = toolchain.folder(here, helm), toolchain.folder(here, etcd)
    monkeypatch.setattr(toolchain, "_version", lambda _: "v1.99.0")
    assert toolchain.folder(here, helm) != before[0]
    assert toolchain.folder(here, etcd) == before[1]


def go_that_says(folder: Path, version: str) -> Path:
    go = folder / "go"
    folder.mkdir()
    go.write_text(f"#!/bin/sh\necho go version {version} linux/amd64\n")
    go.chmod(0o755)
    return go


def test_without_go_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolchain, "USUAL_GO_PATH", str(tmp_path))
    with pytest.raises(RefusedError, match=r"no `go` on PATH: install Go 1\.21 or newer"):
        toolchain.find_go()


def test_a_go_that_is_too_old_is_refused_with_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = go_that_says(tmp_path / "debian", "go1.19.8")
    monkeypatch.setenv("PATH", f"{old.parent}:/bin")
    monkeypatch.setattr(toolchain, "USUAL_GO_PATH", str(tmp_path))
    with pytest.raises(RefusedError, match=rf"{old} is Go 1\.19: install Go 1\.21 or newer"):
        toolchain.find_go()


def test_an_old_go_on_the_path_does_not_hide_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = go_that_says(tmp_path / "debian", "go1.19.8")
    new = go_that_says(tmp_path / "usual", "go1.21.0")
    monkeypatch.setenv("PATH", f"{old.parent}:/bin")
    monkeypatch.setattr(toolchain, "USUAL_GO_PATH", str(new.parent))
    assert toolchain.find_go() == new
