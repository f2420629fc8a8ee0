"""Runs commands and waits on conditions; decides nothing."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .errors import FailedError

TAIL_LINES = 20


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    text_in: str | None = None,
) -> str:
    """Standard output of a command; a failure carries the end of what it wrote."""
    done = attempt(argv, cwd=cwd, env=env, text_in=text_in)
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-TAIL_LINES:])
        command = " ".join(str(word) for word in argv)
        raise FailedError(f"`{command}` ended with {done.returncode}:\n{tail}")
    return done.stdout


def attempt(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    text_in: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """A finished command, whatever its exit status."""
    return subprocess.run(
        [str(word) for word in argv],
        cwd=cwd,
        env=env,
        input=text_in,
        stdin=subprocess.DEVNULL if text_in is None else None,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def wait_until(
    holds: Callable[[], bool], *, what: str, deadline_s: float, every_s: float = 0.1
) -> None:
    """Return as soon as ``holds()``; past the deadline fail with ``what``."""
    end = time.monotonic() + deadline_s
    while not holds():
        if time.monotonic() > end:
            raise FailedError(f"{what}: not after {deadline_s:.0f} s")
        time.sleep(every_s)
