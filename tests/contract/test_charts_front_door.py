import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ..support.helm import ROOT, render

MODELS = {"data": [{"id": "tiny-qwen3.5"}]}
TOKEN = {"choices": [{"text": ""}], "usage": {"completion_tokens": 1}}


@contextmanager
def front_door(
    *answers: tuple[int, object], models: object = MODELS, key: str = ""
) -> Iterator[tuple[str, list[tuple[str, object]]]]:
    """A server that gives these answers in order, the last for ever; address and requests."""
    left = list(answers)
    seen: list[tuple[str, object]] = []

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, models)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((self.path, json.loads(body)))
            self._answer(*(left.pop(0) if len(left) > 1 else left[0]))

        def _answer(self, status: int, answer: object) -> None:
            if key and self.headers["Authorization"] != f"Bearer {key}":
                status, answer = 401, {"error": {"message": "no such key"}}
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Door) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}", seen
        finally:
            server.shutdown()
            thread.join()


def ask(host: str, timeout_s: float = 20.0, **more: str) -> subprocess.CompletedProcess[str]:
    """Runs the rendered pod's own command against an address."""
    values = ROOT / "charts" / "hypic-cluster" / "ci" / "one-machine-values.yaml"
    (container,) = render("hypic-cluster", values).one("Pod")["spec"]["containers"]
    assert container["command"] == ["python3", "-c"]
    environment = {item["name"]: item["value"] for item in container["env"]}
    environment |= {"HOST": host, "TIMEOUT_S": str(timeout_s), "PAUSE_S": "0.05"}
    environment |= {"PATH": os.environ["PATH"]} | more
    command = [sys.executable, "-c", *container["args"]]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_one_token_is_success_and_the_request_is_a_users():
    with front_door((200, TOKEN)) as (host, seen):
        done = ask(host)
    assert done.returncode == 0, done.stderr
    ((path, body),) = seen
    assert path == "/v1/completions"
    assert (body["model"], body["max_tokens"]) == ("tiny-qwen3.5", 1)


def test_the_first_key_of_a_mounted_secret_is_sent(tmp_path):
    (tmp_path / "..data").mkdir()
    (tmp_path / "clients").write_text("# team search\n\n sk-1 \nsk-2\n")
    with front_door((200, TOKEN), key="sk-1") as (host, _):
        assert ask(host, KEYS=str(tmp_path)).returncode == 0
        without = ask(host)
    assert without.returncode != 0
    assert "no such key" in without.stderr


def test_the_pod_of_a_cluster_with_keys_has_them_mounted_where_it_looks():
    values = ROOT / "charts" / "hypic-cluster" / "ci" / "every-value-values.yaml"
    spec = render("hypic-cluster", values).one("Pod")["spec"]
    (volume,), (container,) = spec["volumes"], spec["containers"]
    (mount,) = container["volumeMounts"]
    assert volume == {"name": mount["name"], "secret": {"secretName": "clients"}}
    assert {"name": "KEYS", "value": mount["mountPath"]} in container["env"]


def test_a_cluster_that_is_starting_is_waited_for():
    with front_door((503, {"error": {"message": "no engine is ready"}}), (200, TOKEN)) as (
        host,
        seen,
    ):
        done = ask(host)
    assert done.returncode == 0, done.stderr
    assert "waiting" in done.stdout
    assert "no engine is ready" in done.stdout
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (404, {"error": {"message": "no such route"}}),
        (200, {"choices": [{"text": ""}], "usage": {"completion_tokens": 0}}),
        (200, {"choices": [], "usage": {"completion_tokens": 1}}),
        (200, {"choices": [{"text": "x"}]}),
    ],
    ids=["no route", "no token", "no choice", "no usage"],
)
def test_an_answer_without_a_token_fails_at_once_and_is_shown(status, answer):
    with front_door((status, answer)) as (host, seen):
        done = ask(host)
    assert done.returncode == 1
    assert "no token" in done.stderr
    assert str(status) in done.stderr
    assert len(seen) == 1


def test_nobody_there_fails_when_the_time_is_over():
    done = ask("127.0.0.1:1", timeout_s=0.5)
    assert done.returncode == 1
    assert "no token of tiny-qwen3.5 within 0.5 s" in done.stderr
    assert "ConnectionRefusedError" in done.stderr


@pytest.mark.parametrize("models", [{"data": [{"id": "other"}]}, {"data": []}, {}])
def test_a_front_door_that_serves_another_model_fails_at_once(models):
    with front_door((200, TOKEN), models=models) as (host, seen):
        done = ask(host)
    assert done.returncode == 1
    assert "no token of tiny-qwen3.5" in done.stderr
    assert seen == []


@pytest.mark.parametrize("status", [200, 404])
def test_what_answers_in_place_of_the_front_door_is_waited_for(status):
    with front_door((status, b"<html>"), (status, []), (200, TOKEN)) as (host, seen):
        done = ask(host)
    assert done.returncode == 0, done.stderr
    assert len(seen) == 3
