"""The engine's environment on one machine: stock SGLang and torch, pinned, compiled, read-only.

Eleven gigabytes in an image would be copied three times on its way into a node; a folder of the
host is mounted instead. Its interpreter must be the one that the base image has at the same path.
"""

import hashlib
import os
from pathlib import Path

from .. import packages, preflight
from ..progress import step
from ..settings import Settings
from ..shell import run
from . import uv
from .made import made_once

INTERPRETER = Path("/usr/bin/python3.11")
REQUIREMENTS = Path(__file__).parent.parent / "engine-requirements.txt"
PROOF = "import sglang, torch; print(sglang.__version__, torch.__version__)"


def folder(settings: Settings) -> Path:
    """Where the environment of today's requirements lies, made or not."""
    return settings.cache / f"engine-env-{_key()}"


def _key() -> str:
    return hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]


def python(settings: Settings) -> Path:
    """The environment's interpreter; the environment is made when missing."""
    home = folder(settings)
    with made_once(home, key=_key()) as missing:
        if missing:
            preflight.require_disk(settings.cache, ["the engine's environment"])
            if not INTERPRETER.exists():
                packages.ensure(["python3.11"])
            _make(settings, home)
    return home / "bin" / "python3"


def _make(settings: Settings, home: Path) -> None:
    # A machine may forbid bytecode; pods read the folder and could never write it themselves.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    program = uv.program(settings)
    with step("install SGLang and torch for the engine (11 GB)", takes="about 2 minutes"):
        run([program, "venv", "--quiet", "--clear", "--python", INTERPRETER, home], env=env)
        # The list is complete already: nothing is left to resolve.
        options = ("--quiet", "--no-deps", "--compile-bytecode")
        into = ("--python", home / "bin" / "python3", "-r", REQUIREMENTS)
        run([program, "pip", "install", *options, *into], env=env)
    with step("import SGLang once"):
        run([home / "bin" / "python3", "-c", PROOF], env=env)
