"""The tiny model and the engines that tests of this folder share."""

import subprocess
import sys
from pathlib import Path

import pytest

from ...support.engine_server import Engine
from ...support.oracle import Model, load

ROOT = Path(__file__).parents[3]
PIC = ("--pic-enable", "--enable-cache-report", "--enable-metrics")
# Memory that others take while an engine starts is not there for it: ask for little of much.
ROOM = ("--mem-fraction-static", "0.5", "--pic-memory-gib", "0.1")
SMALL_POOL = (
    *("--max-total-tokens", "1200", "--pic-memory-gib", "0.01"),
    *(
        "--schedule-conservativeness",
        "0.1",
    ),  # promise more than there is, so that some is taken back
)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Path:
    return written("qwen3.5", tmp_path_factory)


@pytest.fixture(scope="session")
def model(tiny) -> Model:
    return load(tiny)


@pytest.fixture(scope="session")
def engine(tiny, tmp_path_factory):
    yield from running(tiny, tmp_path_factory, *PIC)


@pytest.fixture(scope="session")
def small(tiny, tmp_path_factory):
    """An engine with room for 1200 tokens and a handful of segments."""
    yield from running(tiny, tmp_path_factory, *PIC, *SMALL_POOL)


@pytest.fixture(scope="session")
def lightning(request, tmp_path_factory):
    """An engine of the family that the test asks for, and its oracle."""
    folder = written(request.param, tmp_path_factory)
    for started in running(folder, tmp_path_factory, *PIC, *ROOM):
        yield started, load(folder)


def written(family: str, tmp_path_factory) -> Path:
    """The tiny model of a family, by the script that users run."""
    folder = tmp_path_factory.mktemp("models") / family
    script = ROOT / "examples" / "tiny_model.py"
    subprocess.run([sys.executable, script, folder, "--family", family], check=True)
    return folder


def running(model, tmp_path_factory, *flags, **variables):
    """An engine for as long as a fixture lives; it must neither die nor lose memory."""
    log = tmp_path_factory.mktemp("engine") / "log"
    with Engine(model, log, flags=flags, variables=variables) as started:
        yield started
        assert started.alive, started.log.read_text()[-4000:]
        assert "memory leak" not in started.log.read_text()
    # SGLang waits at its end for every request that it believes to be under way.
    assert "Remaining number of requests 0" in started.log.read_text()
