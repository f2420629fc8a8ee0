"""docs/api.md says what the definitions say, all of it."""

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "crds" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_as_generated(reference: ModuleType) -> None:
    assert (ROOT / "docs" / "api.md").read_text() == reference.page(ROOT)


def test_a_page_that_lags_behind_fails_the_check(reference: ModuleType, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "crds", tmp_path / "crds")
    (tmp_path / "docs").mkdir()
    assert reference.main(["--check"], tmp_path) == 1
    assert reference.main([], tmp_path) == 0
    assert reference.main(["--check"], tmp_path) == 0
    (crd, *_) = (tmp_path / "crds").glob("*clusters.yaml")
    crd.write_text(crd.read_text().replace("The model that is served", "The served model"))
    assert reference.main(["--check"], tmp_path) == 1


def test_a_row_has_type_meaning_limits_and_rules(reference: ModuleType) -> None:
    rows = dict(
        row.strip("| ").split(" | ", 1)
        for row in reference.page(ROOT).splitlines()
        if row.startswith("| `")
    )
    seam = rows["`pic.seam`"]
    assert seam.startswith("integer or string | How much is recomputed")
    assert 'default `"8"`' in seam
    assert "a whole number of tokens up to 4096" in seam
    assert rows["`model.name`"].split(" | ")[-1].startswith("required; at most 128 characters")
    assert rows["`prefill.template.engine.env[].name`"].startswith("string | Name of the variable")
    assert rows["`prefill.template.affinity`"].startswith("object, as in Kubernetes")
    assert "one of `Auto`, `Surge`, `Recreate`" in rows["`rollout.strategy`"]
    assert "1 to 512" in rows["`prefill.replicas`"]
