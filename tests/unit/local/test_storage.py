from pathlib import Path

import pytest

from local.storage.made import made_once
from local.storage.publish import Claim, request, volume

CLAIM = Claim("hypic-models", "/c/models")


def test_a_volume_belongs_to_one_claim_and_is_read_only() -> None:
    made, asked = volume(CLAIM, "team"), request(CLAIM, "team")
    assert made["spec"]["claimRef"] == {"name": "hypic-models", "namespace": "team"}
    assert asked["spec"]["volumeName"] == made["metadata"]["name"] == "hypic-models-team"
    assert made["spec"]["accessModes"] == asked["spec"]["accessModes"] == ["ReadOnlyMany"]


def test_two_namespaces_have_two_volumes_over_one_folder() -> None:
    one, two = volume(CLAIM, "one"), volume(CLAIM, "two")
    assert one["metadata"]["name"] != two["metadata"]["name"]
    assert one["spec"]["hostPath"] == two["spec"]["hostPath"]


def test_a_folder_is_made_once(tmp_path: Path) -> None:
    made = []
    for _ in range(2):
        with made_once(tmp_path / "env", key="1") as missing:
            made.append(missing)
            if missing:
                (tmp_path / "env").mkdir()
    assert made == [True, False]


def test_an_interrupted_folder_is_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "env"

    def make_half() -> None:
        with made_once(folder, key="1"):
            folder.mkdir()
            (folder / "half").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_half()
    with made_once(folder, key="1") as missing:
        assert missing
        assert not folder.exists()
        folder.mkdir()


def test_another_key_makes_it_anew(tmp_path: Path) -> None:
    for key in ("1", "2"):
        with made_once(tmp_path / "env", key=key) as missing:
            assert missing
            (tmp_path / "env").mkdir()
