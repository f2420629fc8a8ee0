from pathlib import Path

import pytest

from local.images import tag

FILES = {
    "pyproject.toml": '[project]\nversion = "0.1.0"\n',
    "engine/hypic_engine/__init__.py": "",
    "router/pyproject.toml": "router",
    "operator/pyproject.toml": "operator",
    "images/operator/Dockerfile": "FROM a",
    "images/router/Dockerfile": "FROM a",
    "images/engine/Dockerfile": "FROM a",
    "images/build.txt": "hatchling",
    "locks/operator.txt": "kopf",
    "locks/router.txt": "aiohttp",
    "local/images/base.py": "recipe",
    "README.md": "words",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_same_inputs_have_the_same_tag(repository: Path) -> None:
    first = tag.tag(repository)
    assert first == tag.tag(repository)
    assert first.startswith("0.1.0-")
    assert len(first) == len("0.1.0-") + 12


@pytest.mark.parametrize("name", sorted(set(FILES) - {"README.md", "pyproject.toml"}))
def test_every_input_changes_the_tag(repository: Path, name: str) -> None:
    before = tag.tag(repository)
    (repository / name).write_text(FILES[name] + "\n")
    assert tag.tag(repository) != before


def test_what_does_not_go_into_an_image_changes_nothing(repository: Path) -> None:
    before = tag.tag(repository)
    (repository / "README.md").write_text("other words")
    cached = repository / "engine" / "hypic_engine" / "__pycache__" / "x.pyc"
    cached.parent.mkdir()
    cached.write_bytes(b"compiled")
    egg = repository / "router" / "hypic_router.egg-info" / "PKG-INFO"
    egg.parent.mkdir()
    egg.write_text("installed")
    assert tag.tag(repository) == before


def test_a_moved_file_is_another_input() -> None:
    assert tag.digest([("a", b"bc")]) != tag.digest([("ab", b"c")])


def test_all_three_images_have_one_tag(repository: Path) -> None:
    names = tag.names(repository)
    assert [name.split("/")[-1].split(":")[0] for name in names] == ["operator", "router", "engine"]
    assert len({name.rpartition(":")[2] for name in names}) == 1
