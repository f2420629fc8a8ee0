"""The tiny model and one engine that most tests of this folder share."""

import subprocess
import sys
from pathlib import Path

import pytest

from ...support.engine_server import Engine
from ...support.oracle import Model

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    script = ROOT / "examples" / "tiny_model.py"
    subprocess.run([sys.executable, script, folder], check=True)
    return folder


@pytest.fixture(scope="session")
def model(tiny) -> Model:
    return Model(tiny)


@pytest.fixture(scope="session")
def engine(tiny, tmp_path_factory):
    log = tmp_path_factory.mktemp("engine") / "log"
    flags = ("--pic-enable", "--enable-cache-report", "--enable-metrics")
    with Engine(tiny, log, flags=flags) as running:
        yield running
        assert "leak" not in log.read_text()
