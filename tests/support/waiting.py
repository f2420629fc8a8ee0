"""Wait for what must become true, with a deadline and the last thing seen in the failure."""

import time
from collections.abc import Callable
from typing import TypeVar

Seen = TypeVar("Seen")


def eventually(
    look: Callable[[], Seen], *, until: Callable[[Seen], bool] = bool, within_s: float = 20.0
) -> Seen:
    """What ``look`` returned when ``until`` first held of it."""
    deadline = time.monotonic() + within_s
    while True:
        seen = look()
        if until(seen):
            return seen
        assert time.monotonic() < deadline, f"not within {within_s} s; last seen: {seen!r}"
        time.sleep(0.05)
