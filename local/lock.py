"""One change of a thing at a time, across processes."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from .progress import say
from .settings import Settings


@contextmanager
def exclusive(settings: Settings, thing: str = "cluster") -> Iterator[None]:
    """Hold the lock of ``thing``; waits, and says so, while another process has it."""
    settings.cache.mkdir(parents=True, exist_ok=True)
    with (settings.cache / f"{thing}.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another `python3 -m local` works on the same {thing}: waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
