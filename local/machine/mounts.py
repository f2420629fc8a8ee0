"""Finds and removes mounts below a folder; knows nothing of Kubernetes."""

import re
import shutil
from pathlib import Path

from ..errors import FailedError
from ..shell import attempt


def parse(mountinfo: str, folder: str) -> list[str]:
    """Mount points at or below ``folder`` in the text of /proc/self/mountinfo, last first."""
    points = [_unescape(line.split()[4]) for line in mountinfo.splitlines() if line]
    inside = [p for p in points if p == folder or p.startswith(folder.rstrip("/") + "/")]
    return inside[::-1]


def _unescape(point: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), point)


def below(folder: Path) -> list[str]:
    """Mount points at or below a folder, in the order in which they can be unmounted."""
    return parse(Path("/proc/self/mountinfo").read_text(), str(folder))


def unmount_all(folder: Path) -> None:
    """Unmount everything at or below a folder, even what is busy."""
    for point in below(folder):
        attempt(["umount", "--lazy", point])
    if left := below(folder):
        raise FailedError(f"cannot unmount {', '.join(left)}: unmount by hand and run again")


def remove_tree(folder: Path) -> None:
    """Delete a folder, after making sure that no mount leads out of it."""
    unmount_all(folder)
    if folder.exists():
        shutil.rmtree(folder)
