"""One change of the cluster at a time, across processes."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from ..progress import say
from ..settings import Settings


@contextmanager
def exclusive(settings: Settings) -> Iterator[None]:
    """Hold the cluster's lock; waits, and says so, while another process has it."""
    settings.cache.mkdir(parents=True, exist_ok=True)
    with (settings.cache / "cluster.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another `python3 -m local` is changing the cluster: waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
