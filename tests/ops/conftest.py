"""The tiny model, made once by the script that users run."""

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ..support.oracle import Model, load

# Kernels run in Triton's interpreter here; it must be chosen before anything imports Triton.
os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

FAMILIES = ("qwen3.5", "qwen3-next", "ring", "bailing-v2.5")


@pytest.fixture(scope="session")
def tiny_model() -> ModuleType:
    import tiny_model  # noqa: PLC0415 - a script, found only now

    return tiny_model


@pytest.fixture(scope="session")
def tiny_folder(tiny_model, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tiny_model.publish(folder)
    return folder


@pytest.fixture(scope="session")
def oracle(tiny_folder) -> Model:
    return load(tiny_folder)


@pytest.fixture(scope="session", params=FAMILIES)
def any_oracle(request, tiny_model, tmp_path_factory) -> Model:
    """The oracle of each tiny model in turn."""
    return _made(tiny_model, tmp_path_factory, request.param)


@pytest.fixture(scope="session", params=["qwen3.5", "ring"])
def each_rule(request, tiny_model, tmp_path_factory) -> Model:
    """The oracle of one model for each rule by which states evolve."""
    return _made(tiny_model, tmp_path_factory, request.param)


def _made(tiny_model: ModuleType, tmp_path_factory, family: str) -> Model:
    folder = tmp_path_factory.mktemp("models") / family
    tiny_model.publish(folder, family)
    return load(folder)
