"""Drains an engine and waits until it is empty: ``python3 -m hypic_engine.drain``.

For a container's ``preStop``, so that an eviction or a node drain lets running requests end as a
rollout does. Needs only the standard library; does not stop the engine.
"""

import argparse
import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

KEY_VARIABLE = "HYPIC_ADMIN_KEY"
POLL_S = 0.5
ANSWER_WITHIN_S = 5.0


class _RefusedError(Exception):
    """The engine answered, and not with a drain."""


def _ask(url: str, order: dict[str, float] | None, key: str) -> dict[str, Any]:
    headers = {"content-type": "application/json"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    data = None if order is None else json.dumps(order).encode()
    request = urllib.request.Request(url, data, headers)  # noqa: S310 - given by who runs this
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_WITHIN_S) as answer:  # noqa: S310
            state: dict[str, Any] = json.load(answer)
            return state
    except urllib.error.HTTPError as error:
        raise _RefusedError(
            f"HTTP {error.code} {error.read(300).decode(errors='replace')}"
        ) from None


def _is_gone(error: OSError) -> bool:
    return isinstance(getattr(error, "reason", error), ConnectionRefusedError)


def drain(base: str, *, deadline_s: float, key: str = "") -> str | None:
    """Begin a drain and wait for its end.

    Args:
        base: address of the engine.
        deadline_s: seconds after which waiting ends; sooner when a drain began before.
        key: SGLang's admin key, or its API key; empty when the engine has none.

    Returns:
        What was still running at the deadline or why no drain began; None when the engine is empty
        or gone.
    """
    ends_at = time.monotonic() + deadline_s
    url = f"{base.rstrip('/')}/pic/drain"
    said = "the engine does not answer"
    order: dict[str, float] | None = {"deadline_s": deadline_s}
    while True:
        try:
            state = _ask(url, order, key)
        except _RefusedError as error:
            return str(error)
        except OSError as error:
            if _is_gone(error):
                return None
        else:
            order = None
            if state["left_s"] is not None:
                ends_at = min(ends_at, time.monotonic() + state["left_s"])
            if not (state["running"] or state["queued"] or state["transfers"]):
                return None
            said = json.dumps(state)
        if time.monotonic() > ends_at:
            return said
        time.sleep(POLL_S)


def main(arguments: Sequence[str] | None = None) -> int:
    """Status 0 when the engine is empty or gone, else 1 with one line on standard error."""
    parser = argparse.ArgumentParser(prog="python3 -m hypic_engine.drain", description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:30000", help="default: %(default)s")
    parser.add_argument("--deadline-s", type=float, required=True, help="how long to wait at most")
    parser.add_argument(
        "--key-file", type=Path, help=f"holds the admin key (default: variable {KEY_VARIABLE})"
    )
    given = parser.parse_args(arguments)
    key = given.key_file.read_text().strip() if given.key_file else os.environ.get(KEY_VARIABLE, "")
    left = drain(given.url, deadline_s=given.deadline_s, key=key)
    if left is None:
        return 0
    sys.stderr.write(f"not drained: {left}\n")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
