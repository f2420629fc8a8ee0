"""One line a step on standard error, with seconds; answers never go through here."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


def say(text: str) -> None:
    """Print one line of progress."""
    print(f"local: {text}", file=sys.stderr, flush=True)


@contextmanager
def step(text: str, *, takes: str | None = None) -> Iterator[None]:
    """Print ``text`` with the seconds its body took, or with the word failed.

    Args:
        text: what is done.
        takes: for long steps, how long people have to wait; printed at once.
    """
    started = time.monotonic()
    if takes is not None:
        say(f"{text}: takes {takes} ...")
    try:
        yield
    except BaseException:
        say(f"{text}: failed after {time.monotonic() - started:.1f} s")
        raise
    say(f"{text}: {time.monotonic() - started:.1f} s")
