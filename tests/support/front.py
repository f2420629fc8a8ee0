"""This checkout's router as a process, for tests that run in the engine's environment."""

import contextlib
import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .engine_server import Engine, free_port
from .waiting import eventually

HOST = "127.0.0.1"
PYTHON = Path(__file__).parents[2] / ".venv" / "bin" / "python"


@dataclass
class Front(Engine):
    """A router; it is asked as an engine is."""

    def timed(self, path: str, body: dict[str, Any]) -> tuple[int, Any, float]:
        """Status, answer and how long it took."""
        began_s = time.monotonic()
        status, answer = self.post(path, body, 60)
        return status, answer, time.monotonic() - began_s

    def ready(self, count: int) -> bool:
        """Whether so many engines are."""
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.port + 1}/fleet", timeout=5) as said:
                engines = json.load(said)["engines"]
        except OSError:
            return False
        return sum(one["state"] == "ready" for one in engines) == count


@contextlib.contextmanager
def front(log: Path, *flags: str, ready: int = 1) -> Iterator[Front]:
    """A router with these flags, once so many engines are ready for it."""
    port = free_port()
    flags += ("--host", HOST, "--port", f"{port}", "--metrics-port", f"{port + 1}")
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [PYTHON, "-m", "hypic_router", "--model", "any", *flags, "--unlisted-s", "0"],
            env=kept,
            stderr=stderr,
        )
    try:
        router = Front(log, log, port=port, process=process)
        eventually(lambda: router.ready(ready), within_s=60)
        yield router
    finally:
        process.terminate()
        process.wait(30)
