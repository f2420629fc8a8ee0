from pathlib import Path

from local.cluster import status


def test_a_table_has_straight_columns() -> None:
    assert status.table([("PART", "PID"), ("etcd", "1"), ("containerd", "22")]) == (
        "PART        PID\netcd        1\ncontainerd  22"
    )


def test_ages_read_as_people_say_them() -> None:
    assert [status.since(s) for s in (3, 600, 36000)] == ["3 s", "10 min", "10.0 h"]


def test_a_link_counts_its_file_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 10_000)
    once = status.size_bytes(tmp_path)
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    assert status.size_bytes(tmp_path) == once
