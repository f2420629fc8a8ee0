import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from ..support.helm import ROOT

CHARTS = sorted(path.parent for path in (ROOT / "charts").glob("*/Chart.yaml"))
CRDS = sorted((ROOT / "crds").glob("*.yaml"))
COPIES = ROOT / "charts" / "hypic-operator" / "files" / "crds"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "charts" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    chart = tmp_path / "charts" / "hypic-operator"
    chart.mkdir(parents=True)
    (chart / "Chart.yaml").write_text(
        "{name: hypic-operator, description: d, version: 1.0.0, kubeVersion: '>=1.30.0-0'}"
    )
    (chart / "values.yaml").write_text("# Intro.\n\n# -- How many\nreplicas: 2\n")
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds" / "a.yaml").write_text("kind: A\n")
    return tmp_path


def test_what_is_generated_is_up_to_date(generate):
    assert generate.main(["--check"]) == 0


def test_a_fresh_tree_fails_the_check_and_passes_after_generating(generate, tree, capsys):
    assert generate.main(["--check"], tree) == 1
    assert "make generate" in capsys.readouterr().err
    assert generate.main([], tree) == 0
    assert generate.main(["--check"], tree) == 0


def test_an_edited_copy_of_a_crd_fails_the_check_with_a_diff(generate, tree, capsys):
    generate.main([], tree)
    copy = tree / "charts" / "hypic-operator" / "files" / "crds" / "a.yaml"
    copy.write_text("kind: B\n")
    assert generate.main(["--check"], tree) == 1
    assert "-kind: B" in capsys.readouterr().err


def test_a_copy_whose_crd_is_gone_fails_the_check_and_is_removed(generate, tree):
    generate.main([], tree)
    (tree / "crds" / "a.yaml").unlink()
    assert generate.main(["--check"], tree) == 1
    generate.main([], tree)
    assert not list((tree / "charts" / "hypic-operator" / "files" / "crds").iterdir())


def test_the_charts_crds_are_byte_equal_to_their_source():
    assert CRDS
    assert [path.name for path in sorted(COPIES.iterdir())] == [path.name for path in CRDS]
    for crd in CRDS:
        assert (COPIES / crd.name).read_bytes() == crd.read_bytes()


def test_a_value_without_description_is_named(generate):
    with pytest.raises(generate.SourceError, match=r"a\.b has no '# --'"):
        generate.values("a:\n  b: 1\n")


def test_a_null_without_type_is_named(generate):
    (value,) = generate.values("# -- Something\na: null\n")
    with pytest.raises(generate.SourceError, match="a is null"):
        generate.leaf_schema(value)


def test_a_description_may_take_two_lines_and_a_schema(generate):
    text = "# -- First\n# second\n# @schema {minimum: 1}\na: 2\n"
    (value,) = generate.values(text)
    assert value.description == "First second"
    assert generate.leaf_schema(value) == {
        "description": "First second",
        "type": "integer",
        "minimum": 1,
        "default": 2,
    }


def test_a_null_default_may_be_null_or_of_its_type(generate):
    (value,) = generate.values("# -- One of two\n# @schema {type: string, enum: [x, y]}\na: null\n")
    assert generate.leaf_schema(value)["type"] == ["string", "null"]
    assert generate.leaf_schema(value)["enum"] == ["x", "y", None]


@pytest.mark.parametrize("chart", CHARTS, ids=lambda path: path.name)
def test_every_value_is_in_the_readme_and_the_schema(chart, generate):
    readme = (chart / "README.md").read_text()
    schema = json.loads((chart / "values.schema.json").read_text())
    for value in generate.values((chart / "values.yaml").read_text()):
        at = schema
        for key in value.path:
            at = at["properties"][key]
        assert at["description"] == value.description
        assert f"`{'.'.join(value.path)}`" in readme


@pytest.mark.parametrize("chart", CHARTS, ids=lambda path: path.name)
def test_a_chart_carries_the_version_of_the_images(chart):
    meta = yaml.safe_load((chart / "Chart.yaml").read_text())
    version = (ROOT / "operator" / "pyproject.toml").read_text().split('version = "')[1]
    assert meta["appVersion"] == version.split('"')[0]
