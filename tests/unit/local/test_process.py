import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from local.machine import process
from local.machine.process import Record

IGNORES_TERM = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('ready', flush=True); time.sleep(600)"
)


def start(folder: Path, *argv: str) -> Record:
    env = {"PATH": os.environ["PATH"]}
    return process.start("part", argv, folder=folder, log=folder / "log", env=env, inputs="x")


def test_a_started_process_is_recorded_and_ends_when_asked(tmp_path: Path) -> None:
    record = start(tmp_path, "sleep", "600")
    assert process.read(tmp_path, "part") == record
    assert process.is_alive(record)
    assert process.end(record, grace_s=5)
    assert not process.is_alive(record)


def test_a_process_that_will_not_end_is_made_to(tmp_path: Path) -> None:
    record = start(tmp_path, sys.executable, "-c", IGNORES_TERM)
    while "ready" not in (tmp_path / "log").read_text():
        assert process.is_alive(record)
    assert process.end(record, grace_s=0.2)
    assert not process.is_alive(record)


@pytest.mark.parametrize("change", [{"start_ticks": 1}, {"boot_id": "another boot"}])
def test_a_reused_process_id_is_never_killed(change: dict) -> None:
    with subprocess.Popen(["sleep", "600"]) as stranger:
        ticks = process.start_ticks(stranger.pid)
        assert ticks is not None
        boot = process.BOOT_ID.read_text().strip()
        true = Record("part", stranger.pid, ticks, boot, "x", 0.0)
        assert process.is_alive(true)
        record = dataclasses.replace(true, **change)
        assert not process.is_alive(record)
        assert not process.end(record, grace_s=0)
        assert stranger.poll() is None
        stranger.kill()


def test_a_zombie_counts_as_dead() -> None:
    with subprocess.Popen(["true"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.read()
        while process.start_ticks(child.pid) is not None:
            pass
        assert Path(f"/proc/{child.pid}").exists()


def test_a_program_name_with_spaces_and_brackets_does_not_confuse() -> None:
    fields = ["S", *(["0"] * 18), "4711", "0"]
    assert process.parse_stat(f"12 (a) b (c) {' '.join(fields)}\n") == ("S", 4711)


def test_a_record_that_cannot_be_read_is_no_record(tmp_path: Path) -> None:
    (tmp_path / "part.json").write_text("{")
    assert process.read(tmp_path, "part") is None
    assert process.read(tmp_path, "other") is None
