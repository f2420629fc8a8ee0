import hashlib

import pytest

from hypic_router.guard.keys import Keys


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "team-a").write_text("sk-a1\n# an old one\n\n  sk-a2  \n")
    (tmp_path / "team-b").write_text("sk-b")
    (tmp_path / "..data").mkdir()
    return tmp_path


def read(path):
    keys = Keys(str(path))
    keys.look()
    return keys


def test_every_line_of_every_file_is_a_key(folder):
    keys = read(folder)
    assert all(keys.admit(f"Bearer {key}") for key in ("sk-a1", "sk-a2", "sk-b"))


@pytest.mark.parametrize(
    "given",
    ["", "Bearer", "Bearer ", "sk-b", "Basic sk-b", "Bearer sk-", "Bearer sk-b sk-b", "Bearer #"],
)
def test_what_is_not_a_key_is_not_admitted(folder, given):
    assert not read(folder).admit(given)


def test_the_scheme_is_read_without_case_as_http_says(folder):
    assert read(folder).admit("bearer sk-b")


def test_keys_change_with_their_files(folder):
    keys = read(folder / "team-b")
    (folder / "team-b").write_text("sk-new")
    keys.look()
    assert keys.admit("Bearer sk-new")
    assert not keys.admit("Bearer sk-b")


def test_keys_that_were_read_stay_while_the_file_is_away(folder):
    keys = read(folder / "team-b")
    (folder / "team-b").unlink()
    keys.look()
    assert keys.admit("Bearer sk-b")


def test_without_readable_keys_nobody_is_admitted(folder):
    assert not read(folder / "nothing").admit("Bearer ")
    (folder / "empty").write_text("\n")
    assert not read(folder / "empty").admit("Bearer ")


def test_a_key_that_is_known_by_its_digest_is_valid_whatever_the_file_says(folder):
    keys = Keys(str(folder / "nothing"), more=[hashlib.sha256(b"sk-operator").hexdigest()])
    for _ in range(2):
        keys.look()
        assert keys.admit("Bearer sk-operator")
        assert not keys.admit("Bearer sk-b")
        (folder / "nothing").write_text("sk-c")
    assert keys.admit("Bearer sk-c")


def test_keys_never_reach_the_log(folder, caplog):
    keys = read(folder)
    keys.admit("Bearer sk-wrong")
    read(folder / "nothing")
    assert "sk-" not in caplog.text
    assert "sk-" not in repr(vars(keys))
