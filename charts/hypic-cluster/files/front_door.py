"""Ask the front door for one token, and fail when none comes.

Runs in the pod of `helm test` with the standard library alone; knows the address and the model's
name from the environment. Goes on asking while the cluster starts, and gives up at once on an
answer that waiting cannot change.
"""

import http.client
import json
import os
import sys
import time

PAUSE_S = 2.0
NOBODY = 0
WORTH_WAITING = frozenset({NOBODY, 429, 500, 502, 503, 504})


def ask(host: str, model: str, timeout_s: float) -> tuple[int, str]:
    """The status and body of one completion request; status 0 when nobody answered."""
    body = {"model": model, "prompt": "Hello", "max_tokens": 1, "temperature": 0}
    connection = http.client.HTTPConnection(host, timeout=timeout_s)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/completions", json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        return NOBODY, f"{type(error).__name__}: {error}"
    finally:
        connection.close()


def n_tokens(body: str) -> int:
    """How many tokens an answer says it holds; 0 when it is no completion."""
    try:
        answer = json.loads(body)
        return int(answer["usage"]["completion_tokens"]) if answer["choices"] else 0
    except (ValueError, KeyError, TypeError):
        return 0


def main() -> str:
    """Ask until a token came; returns what went wrong, nothing when all is well."""
    host, model = os.environ["HOST"], os.environ["MODEL"]
    timeout_s = float(os.environ["TIMEOUT_S"])
    deadline = time.monotonic() + timeout_s
    last = ""
    while (left_s := deadline - time.monotonic()) > 0:
        status, body = ask(host, model, left_s)
        if status == http.client.OK and n_tokens(body) >= 1:
            sys.stdout.write(f"ok: {host} answered with a token: {body[:400]}\n")
            return ""
        now = f"{host} answered {status or 'nothing'}: {body[:400]}"
        if status not in WORTH_WAITING:
            return f"failed: no token, and waiting will not help: {now}"
        if now != last:
            sys.stdout.write(f"waiting: {now}\n")
            sys.stdout.flush()
        last = now
        time.sleep(min(PAUSE_S, max(0.0, deadline - time.monotonic())))
    return f"failed: no token within {timeout_s:g} s: {last}"


if __name__ == "__main__":
    sys.exit(main() or None)
