"""A private uv, because a fresh machine has only venv and pip; nothing outside the cache."""

import shutil
import sys
from pathlib import Path

from .. import packages
from ..progress import step
from ..settings import Settings
from ..shell import attempt, run

VERSION = "0.13.9"


def program(settings: Settings) -> Path:
    """Path of uv, installed into an environment of its own when missing."""
    home = settings.cache / f"uv-{VERSION}"
    path = home / "bin" / "uv"
    if not path.exists():
        with step(f"install uv {VERSION}"):
            _make_environment(home)
            run([home / "bin" / "python", "-m", "pip", "install", "--quiet", f"uv=={VERSION}"])
    return path


def _make_environment(home: Path) -> None:
    argv = (sys.executable, "-m", "venv", "--clear", str(home))
    if attempt(argv).returncode != 0:
        # Debian splits ensurepip from Python.
        packages.ensure(["python3-venv"])
        shutil.rmtree(home, ignore_errors=True)
        run(argv)
