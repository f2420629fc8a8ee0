"""What kubelet and network plugins write outside the cluster's folder, at paths that are fixed."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

LOG_LINKS = Path("/var/log/containers")  # links to the logs of containers
PLUGINS = Path("/var/lib/kubelet/device-plugins")
NETWORK_RESULTS = Path("/var/lib/cni/results")
# Children before their parents, so that each can be removed when empty.
FOLDERS = (LOG_LINKS, PLUGINS, PLUGINS.parent, NETWORK_RESULTS, NETWORK_RESULTS.parent)


def absent() -> list[str]:
    """Those folders that are not there; asked before the first start."""
    return [str(folder) for folder in FOLDERS if not folder.exists()]


def remove(state: Path, *, made_here: Iterable[str]) -> None:
    """Remove files that speak of ``state``, and folders that were made for this cluster."""
    for link in LOG_LINKS.glob("*"):
        if link.is_symlink() and str(state) in str(link.readlink()):
            link.unlink()
    for result in NETWORK_RESULTS.glob("*"):
        if str(state) in result.read_text(errors="replace"):
            result.unlink()
    made = set(made_here)
    if str(PLUGINS) in made:
        for file in PLUGINS.glob("*"):
            file.unlink()
    for folder in FOLDERS:
        if str(folder) in made:
            with suppress(OSError):
                folder.rmdir()
