"""Ends all pods of the cluster at once, whether or not a runtime still watches over them."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ..machine import host, process
from ..settings import Settings
from ..shell import wait_until
from . import node

GONE_DEADLINE_S = 15.0


def end_all(settings: Settings) -> None:
    """Containers first, so that their shims reap them; then the shims and their sockets."""
    sockets = _shim_sockets(settings)
    _end(lambda: host.cgroup_processes(settings.cgroup))
    _end(lambda: node.shims(settings))
    for path in sockets:
        path.unlink(missing_ok=True)


def _end(members: Callable[[], set[int]]) -> None:
    def gone() -> bool:
        left = members()
        for pid in left:
            process.kill(pid)
        return not left

    wait_until(gone, what="pods end", deadline_s=GONE_DEADLINE_S)


def _shim_sockets(settings: Settings) -> set[Path]:
    """Sockets of our shims, which lie in a folder that all containerds of a machine share."""
    bundles = settings.state / "containerd" / "state" / "io.containerd.runtime.v2.task"
    written = set()
    for folder, _, files in os.walk(bundles):
        if "address" in files:
            with suppress(FileNotFoundError):  # a pod that ended meanwhile
                written.add(Path(folder, "address").read_text().strip())
    return {Path(text.removeprefix("unix://")) for text in written if text}
