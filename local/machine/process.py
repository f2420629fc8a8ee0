"""Starts and ends one recorded process; never touches a process whose start it did not record.

A process id is reused by the kernel, so a record also holds the time of start, in clock ticks
since boot, and the boot.
"""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Record:
    """What was written down when a process was started."""

    name: str
    pid: int
    start_ticks: int  # since boot, as in /proc/PID/stat
    boot_id: str
    inputs: str  # digest over command and files
    started_at_s: float  # since the epoch, for people


def parse_stat(stat: str) -> tuple[str, int]:
    """State letter and start ticks of a /proc/PID/stat line, whose second field may hold spaces."""
    fields = stat.rpartition(")")[2].split()
    return fields[0], int(fields[19])


def start_ticks(pid: int) -> int | None:
    """When a process started; None when there is none or it is a zombie."""
    try:
        state, ticks = parse_stat(Path(f"/proc/{pid}/stat").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in "ZX" else ticks


def is_alive(record: Record) -> bool:
    """Whether the very process of a record still runs."""
    return (
        record.boot_id == BOOT_ID.read_text().strip()
        and start_ticks(record.pid) == record.start_ticks
    )


def read(folder: Path, name: str) -> Record | None:
    """The record of a part; None when there is none or it cannot be read."""
    try:
        return Record(**json.loads((folder / f"{name}.json").read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def start(
    name: str,
    argv: Sequence[str],
    *,
    folder: Path,
    log: Path,
    env: Mapping[str, str],
    inputs: str,
) -> Record:
    """Start a process apart from this one, its output into ``log``, and record it."""
    with log.open("ab") as out:
        child = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=dict(env),
            cwd="/",
            start_new_session=True,
        )
    record = Record(
        name=name,
        pid=child.pid,
        start_ticks=start_ticks(child.pid) or 0,
        boot_id=BOOT_ID.read_text().strip(),
        inputs=inputs,
        started_at_s=time.time(),
    )
    path = folder / f"{name}.json"
    path.with_suffix(".new").write_text(json.dumps(asdict(record)) + "\n")
    path.with_suffix(".new").replace(path)
    child.returncode = 0  # it outlives us: silence the warning about a running child
    return record


def end(record: Record, *, grace_s: float) -> bool:
    """Ask a process to end, then make it; False when it was not alive."""
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(record.pid)
        try:
            # The handle is taken first: what is_alive() then confirms is what gets the signal.
            if is_alive(record):
                _end(handle, grace_s)
                return True
        finally:
            os.close(handle)
    return False


def kill(pid: int) -> None:
    """End a process at once; fine when it is gone already."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _end(handle: int, grace_s: float) -> None:
    for number, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0)):
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, number)
        readable, _, _ = select.select([handle], [], [], wait_s)
        if readable:
            return
