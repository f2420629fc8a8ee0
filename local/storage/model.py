"""The tiny model of the demo and the tests, made by a script of the repository."""

import hashlib
from pathlib import Path

from ..errors import RefusedError
from ..progress import step
from ..settings import Settings
from ..shell import run
from . import engine_env
from .made import made_once

NAME = "tiny-qwen3.5"


def folder(settings: Settings) -> Path:
    """The folder that pods see as the root of the models claim."""
    return settings.cache / "models"


def path(settings: Settings) -> Path:
    """The model's folder; the model is made when missing or when its script changed."""
    script = settings.repository / "examples" / "tiny_model.py"
    if not script.exists():
        raise RefusedError(f"no {script}: run from a complete checkout")
    home = folder(settings) / NAME
    with made_once(home, key=_digest(script)) as missing:
        if missing:
            interpreter = engine_env.python(settings)
            with step(f"make the model {NAME}"):
                run([interpreter, script, home])
                _let_pods_read(home)
    return home


def _digest(script: Path) -> str:
    """Of the script and of the modules that it is made of."""
    sha = hashlib.sha256(script.read_bytes())
    for module in sorted((script.parent / "tiny").glob("*.py")):
        sha.update(module.read_bytes())
    return sha.hexdigest()


def _let_pods_read(home: Path) -> None:
    """Pods run as another user."""
    for entry in (home, *home.rglob("*")):
        entry.chmod(0o755 if entry.is_dir() else 0o644)
