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
from .pair import HOST, Pair
from .waiting import eventually

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
def front(both: Pair, log: Path) -> Iterator[Front]:
    """A router before a pair."""
    port = free_port()
    prefill = f"{both.prefill.url}#{both.bootstrap_port}"
    flags = ("--host", HOST, "--port", f"{port}", "--metrics-port", f"{port + 1}")
    flags += ("--model", "any", "--prefill", prefill, "--decode", both.decode.url)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [PYTHON, "-m", "hypic_router", *flags, "--unlisted-s", "0"], env=kept, stderr=stderr
        )
    try:
        router = Front(both.prefill.model, log, port=port, process=process)
        eventually(lambda: router.ready(2), within_s=60)
        yield router
    finally:
        process.terminate()
        process.wait(30)
