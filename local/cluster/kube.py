"""kubectl against the cluster in use."""

import json
import subprocess
from typing import Any

from .. import toolchain
from ..settings import Settings
from ..shell import attempt, run


def _argv(settings: Settings, words: tuple[str, ...]) -> list[str]:
    kubectl = toolchain.program(settings, "kubectl")
    return [str(kubectl), "--kubeconfig", str(settings.kubeconfig), *words]


def kubectl(settings: Settings, *words: str, text_in: str | None = None) -> str:
    """Standard output of kubectl; a failure is an error."""
    return run(_argv(settings, words), text_in=text_in)


def try_kubectl(settings: Settings, *words: str) -> subprocess.CompletedProcess[str]:
    """kubectl, whatever comes of it."""
    return attempt(_argv(settings, words))


def get(settings: Settings, *words: str) -> dict[str, Any] | None:
    """One object; None when it is not there or nothing answers."""
    done = try_kubectl(settings, "get", *words, "--output", "json")
    return json.loads(done.stdout) if done.returncode == 0 else None


def apply(settings: Settings, *objects: dict[str, Any]) -> None:
    """Apply objects on the server's side."""
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    words = ("apply", "--server-side", "--force-conflicts", "--field-manager=hypic-local")
    kubectl(settings, *words, "--filename=-", text_in=json.dumps(listed))
