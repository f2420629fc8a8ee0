"""The demo's lines of progress, on standard error."""

import sys


def say(text: str) -> None:
    """One line of progress."""
    sys.stderr.write(f"demo: {text}\n")
    sys.stderr.flush()
