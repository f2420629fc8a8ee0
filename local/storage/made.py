"""Folders that are made whole or not at all, once, whichever process comes first."""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def made_once(folder: Path, *, key: str) -> Iterator[bool]:
    """Tell the body whether it has to make ``folder``; mark it made when the body ends well.

    What an interrupted run or another key left is removed first. A second process waits.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f".{folder.name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        mark = folder.with_name(f".{folder.name}.made")
        missing = not (folder.exists() and mark.exists() and mark.read_text() == key)
        if missing:
            shutil.rmtree(folder, ignore_errors=True)
        yield missing
        if missing:
            mark.write_text(key)
