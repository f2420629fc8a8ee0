import io
import json
import tarfile
from pathlib import Path

import pytest

from local.errors import RefusedError
from local.images import base, load, pause


def test_the_pause_image_is_the_same_bytes_every_time() -> None:
    assert pause.pack(b"program", ["sh", "ls"]) == pause.pack(b"program", ["ls", "sh"])


def test_the_pause_image_runs_busybox_as_nobody() -> None:
    with tarfile.open(fileobj=io.BytesIO(pause.pack(b"program", ["sh"]))) as tar:
        manifest = json.load(tar.extractfile("manifest.json"))[0]
        config = json.load(tar.extractfile(manifest["Config"]))
        with tarfile.open(fileobj=tar.extractfile("layer.tar")) as layer:
            assert layer.extractfile("bin/sh").read() == b"program"
    assert manifest["RepoTags"] == [pause.NAME]
    assert config["config"]["User"] == "65532:65532"


def test_an_archive_tells_its_names(tmp_path: Path) -> None:
    path = tmp_path / "image.tar"
    path.write_bytes(pause.pack(b"program", []))
    assert load.names_in(path) == (pause.NAME,)


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "image.tar"
    path.write_text("no archive")
    with pytest.raises(RefusedError, match="docker save"):
        load.names_in(path)


@pytest.mark.parametrize(
    "sources",
    [
        "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\n",
        "deb http://mirror.example/debian bookworm main\n",
        "deb [signed-by=/k.gpg] http://mirror.example/debian bookworm main\n",
    ],
)
def test_the_base_comes_from_the_mirror_that_apt_uses(sources: str) -> None:
    assert base.mirror(sources) == "http://mirror.example/debian"


def test_a_source_of_something_else_is_no_mirror() -> None:
    assert base.mirror("deb http://packages.example/apt tools main\n") is None
