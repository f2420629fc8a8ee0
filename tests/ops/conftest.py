"""The tiny model, made once by the script that users run."""

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest

from ..support.oracle import Model

# Kernels run in Triton's interpreter here; it must be chosen before anything imports Triton.
os.environ["TRITON_INTERPRET"] = "1"

SCRIPT = Path(__file__).parents[2] / "examples" / "tiny_model.py"


@pytest.fixture(scope="session")
def tiny_model() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tiny_model", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def tiny_folder(tiny_model, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tiny_model.publish(folder)
    return folder


@pytest.fixture(scope="session")
def oracle(tiny_folder) -> Model:
    return Model(tiny_folder)
