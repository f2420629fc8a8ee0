"""Shows the cluster as a small table; changes nothing."""

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from .. import toolchain
from ..images import load
from ..settings import Settings
from . import kube, node, ready
from .core import names
from .node import Found

GB = 1_000_000_000
MINUTE_S, HOUR_S = 60, 3600


def state_of(found: Found) -> str:
    """One word for what was observed of a part."""
    if not found.observed.recorded:
        return "not started"
    if not found.observed.alive:
        return "dead"
    return "running" if found.observed.healthy else "not answering"


def since(seconds: float) -> str:
    """An age as people say it."""
    if seconds < 2 * MINUTE_S:
        return f"{seconds:.0f} s"
    if seconds < 2 * HOUR_S:
        return f"{seconds / MINUTE_S:.0f} min"
    return f"{seconds / HOUR_S:.1f} h"


def table(rows: Iterable[tuple[str, ...]]) -> str:
    """Columns as wide as their widest word."""
    listed = list(rows)
    widths = [max(len(row[i]) for row in listed) for i in range(len(listed[0]))]
    lines = (
        "  ".join(word.ljust(w) for word, w in zip(row, widths, strict=True)) for row in listed
    )
    return "\n".join(line.rstrip() for line in lines)


def _part_rows(found: Iterable[Found], now_s: float) -> Iterator[tuple[str, ...]]:
    yield "PART", "PID", "STATE", "SINCE"
    for one in found:
        lives = one.record is not None and one.observed.alive
        pid = str(one.record.pid) if one.record is not None and lives else "-"
        age = since(now_s - one.record.started_at_s) if one.record is not None and lives else "-"
        yield one.part.name, pid, state_of(one), age


def size_bytes(folder: Path) -> int:
    """Bytes on disk below a folder, a file with several names counted once."""
    total, seen = 0, set()
    for parent, _, files in os.walk(folder):
        for name in files:
            stat = os.lstat(os.path.join(parent, name))  # noqa: PTH118 - a hundred thousand files
            if stat.st_ino not in seen:
                seen.add(stat.st_ino)
                total += stat.st_blocks * 512
    return total


def _cache_rows(settings: Settings) -> Iterator[tuple[str, ...]]:
    yield "FOLDER", "SIZE", "REMOVE WITH"
    for folder in sorted(path for path in settings.cache.iterdir() if path.is_dir()):
        remove = "python3 -m local down" if folder == settings.state else f"rm -r {folder}"
        yield str(folder), f"{size_bytes(folder) / GB:.2f} GB", remove


def show(settings: Settings) -> str:
    """The whole of ``status`` as text."""
    if settings.existing_kubeconfig is not None:
        answer = kube.try_kubectl(settings, "get", "nodes", "--output=wide")
        return f"cluster of {settings.existing_kubeconfig}\n{answer.stdout or answer.stderr}"
    found = [node.observe(settings, part) for part in node.known_parts(settings)]
    blocks = [table(_part_rows(found, time.time()))]
    if any(one.part.name == "apiserver" and one.observed.healthy for one in found):
        well = ready.node_is_ready(settings)
        blocks.append(f"node {names.NODE_NAME}: {'Ready' if well else 'not Ready'}")
    if any(one.part.name == "containerd" and one.observed.healthy for one in found):
        blocks.append("\n".join(["images:", *(f"  {name}" for name in load.loaded(settings))]))
    if settings.cache.exists():
        blocks.append(table(_cache_rows(settings)))
    if toolchain.is_there(settings, "kubectl") and settings.admin_kubeconfig.exists():
        blocks.append(f"export KUBECONFIG={settings.admin_kubeconfig}")
    return "\n\n".join(blocks)
