"""One line a step on standard error, with seconds; answers never go through here."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


def say(text: str) -> None:
    """Print one line of progress."""
    print(f"local: {text}", file=sys.stderr, flush=True)


@contextmanager
def step(text: str) -> Iterator[None]:
    """Print ``text`` with the seconds its body took, or with the word failed."""
    started = time.monotonic()
    try:
        yield
    except BaseException:
        say(f"{text}: failed after {time.monotonic() - started:.1f} s")
        raise
    say(f"{text}: {time.monotonic() - started:.1f} s")
