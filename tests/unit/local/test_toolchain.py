import json
import shutil
import subprocess

import pytest

from local import toolchain


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
    flags = toolchain.link_flags("k8s.io/kubernetes", "v1.34.4")
    assert "-X k8s.io/component-base/version.gitVersion=v1.34.4" in flags
    assert "-X k8s.io/client-go/pkg/version.gitMinor=34" in flags


def test_without_go_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(toolchain.RefusedError, match="install Go"):
        toolchain.find_go()
