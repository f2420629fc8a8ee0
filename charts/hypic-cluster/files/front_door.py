"""Ask the front door for one token, and fail when none comes or it serves another model.

Runs in the pod of `helm test` with the standard library alone; knows the address and the model's
name from the environment. Goes on asking while the cluster starts, and gives up at once on an
answer that waiting cannot change.
"""

import http.client
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

PAUSE_S = 2.0
NOBODY = 0
WORTH_WAITING = frozenset({NOBODY, 429, 500, 502, 503, 504})


def headers() -> dict[str, str]:
    """What each request says of itself: the first key of the folder KEYS, where there is one."""
    kind = {"Content-Type": "application/json"}
    folder = os.environ.get("KEYS")
    if folder is None:
        return kind
    files = (each for each in sorted(Path(folder).iterdir()) if not each.name.startswith("."))
    lines = (line.strip() for each in files for line in each.read_text().splitlines())
    key = next((line for line in lines if line and not line.startswith("#")), "")
    return kind | {"Authorization": f"Bearer {key}"}


def ask(host: str, path: str, body: object, timeout_s: float) -> tuple[int, str]:
    """The status and body of one answer; status 0 when nobody answered. No body means GET."""
    connection = http.client.HTTPConnection(host, timeout=timeout_s)
    try:
        content = None if body is None else json.dumps(body)
        connection.request("GET" if content is None else "POST", path, content, headers())
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        return NOBODY, f"{type(error).__name__}: {error}"
    finally:
        connection.close()


def serves(answer: Any, model: str) -> bool:
    """Whether a list of models holds the model."""
    return any(each["id"] == model for each in answer["data"])


def holds_token(answer: Any) -> bool:
    """Whether a completion holds a token; its text may be empty all the same."""
    return bool(answer["choices"]) and answer["usage"]["completion_tokens"] >= 1


def checks(model: str) -> list[tuple[str, object, Any]]:
    """What is asked in turn: path, body, and what the answer must fulfil."""
    completion = {"model": model, "prompt": "Hello", "max_tokens": 1, "temperature": 0}
    return [
        ("/v1/models", None, lambda answer: serves(answer, model)),
        ("/v1/completions", completion, holds_token),
    ]


def is_right(status: int, body: str, fulfils: Any) -> bool:
    """Whether an answer is what was asked for; anything that cannot be read is not."""
    try:
        return status == http.client.OK and bool(fulfils(json.loads(body)))
    except (ValueError, KeyError, TypeError):
        return False


def is_final(status: int, body: str) -> bool:
    """Whether waiting cannot change an answer: the front door's own, which is JSON.

    Before the Service leads there, whatever stands between may answer in its place.
    """
    try:
        return status not in WORTH_WAITING and isinstance(json.loads(body), dict)
    except ValueError:
        return False


def main() -> str:
    """Ask until a token came; returns what went wrong, nothing when all is well."""
    host, model = os.environ["HOST"], os.environ["MODEL"]
    timeout_s = float(os.environ["TIMEOUT_S"])
    pause_s = float(os.environ.get("PAUSE_S", PAUSE_S))
    deadline = time.monotonic() + timeout_s
    left, last = checks(model), ""
    while (left_s := deadline - time.monotonic()) > 0:
        path, question, fulfils = left[0]
        status, body = ask(host, path, question, left_s)
        now = f"{host}{path} answered {status or 'nothing'}: {body[:400]}"
        if is_right(status, body, fulfils):
            left = left[1:]
            if not left:
                sys.stdout.write(f"ok: {model} answered with a token: {now}\n")
                return ""
            continue
        if is_final(status, body):
            return f"failed: no token of {model}, and waiting will not help: {now}"
        if now != last:
            sys.stdout.write(f"waiting: {now}\n")
            sys.stdout.flush()
        last = now
        time.sleep(min(pause_s, max(0.0, deadline - time.monotonic())))
    return f"failed: no token of {model} within {timeout_s:g} s: {last}"


if __name__ == "__main__":
    sys.exit(main() or None)
