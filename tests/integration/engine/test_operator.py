"""What the operator renders, run by what reads it: SGLang's parser and the model hub's client.

The golden files of the operator's tests stand for the operator, which is not installed here.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

GOLDEN = Path(__file__).parents[2] / "data" / "operator"
COMMIT = "c" * 40
FILES = {"config.json": b'{"model_type": "tiny"}', "weights/model.safetensors": b"0123456789" * 50}
PARSED = """\
import json, sys
from sglang.srt.plugins import load_plugins
load_plugins()
import argparse
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
read = [vars(parser.parse_args(arguments)) for arguments in json.loads(sys.argv[1])]
print(json.dumps(read, default=str))
"""


def _engines(case: str) -> Iterator[dict[str, Any]]:
    for made in yaml.safe_load_all((GOLDEN / f"{case}.yaml").read_text()):
        if made["kind"] == "StatefulSet":
            yield made["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def read() -> dict[str, dict[str, Any]]:
    """Arguments of every engine as SGLang's own parser reads them, by what the engine does."""
    given = [pod["containers"][0]["args"] for case in ("pair", "full") for pod in _engines(case)]
    command = [sys.executable, "-c", PARSED, json.dumps(given)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-800:]
    parsed = json.loads(done.stdout.splitlines()[-1])
    return {found["disaggregation_mode"]: found for found in parsed}


def test_both_roles_of_a_pair_are_what_sglang_understands(read: dict[str, dict[str, Any]]) -> None:
    prefill, decode = read["prefill"], read["decode"]
    assert prefill["disaggregation_bootstrap_port"] == 8998
    assert (prefill["tp_size"], decode["tp_size"]) == (2, 4)
    for found in (prefill, decode):
        assert found["pic_enable"]
        assert found["pic_memory_gib"] == "0.3x"


def test_an_engine_alone_is_what_sglang_understands(read: dict[str, dict[str, Any]]) -> None:
    alone = read["null"]
    assert alone["served_model_name"] == "Qwen/Qwen3.5"
    assert alone["pic_mode"] == "transition"


class _Hub(BaseHTTPRequestHandler):
    """The few routes of the hub that a download takes; a token is asked for."""

    asked: list[str]
    broken: set[str]

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        path = self.path.partition("?")[0]
        self.asked.append(f"{self.command} {path}")
        if self.headers.get("Authorization") != "Bearer hub-token":
            self._send(401, b'{"error": "Access to model is restricted"}', {}, body=body)
            return
        name = path.partition(f"/resolve/{COMMIT}/")[2]
        if "/tree/" in path:
            entries = [
                {"type": "file", "path": file, "size": len(content), "oid": COMMIT}
                for file, content in FILES.items()
            ]
            self._send(200, json.dumps(entries).encode(), {}, body=body)
        elif path.startswith("/api/models/"):
            siblings = [{"rfilename": file} for file in FILES]
            told = {"id": "Qwen/Qwen3.5", "sha": COMMIT, "siblings": siblings}
            told |= {"private": False, "tags": [], "downloads": 0, "likes": 0}
            self._send(200, json.dumps(told).encode(), {}, body=body)
        elif name in FILES and not (self.command == "GET" and name in self.broken):
            content = FILES[name]
            etag = hashlib.sha256(content).hexdigest()
            headers = {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT}
            self._send(200, content, headers, body=body)
        else:
            self._send(500, b"{}", {}, body=body)

    def _send(self, status: int, content: bytes, headers: dict[str, str], *, body: bool) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)


@contextmanager
def _hub(*broken: str) -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []
    handler = type("Hub", (_Hub,), {"asked": asked, "broken": set(broken)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def _download(folder: Path, endpoint: str, token: str = "hub-token") -> Any:
    """Run the init container's command, its cache in a folder of the test's."""
    container = next(_engines("pair"))["initContainers"][0]
    given = {item["name"]: item["value"] for item in container["env"] if "value" in item}
    place = given["HYPIC_FOLDER"].replace("/cache", str(folder))
    environment = {**os.environ, **given, "HOME": str(folder / "home"), "HYPIC_FOLDER": place}
    environment |= {"HF_ENDPOINT": endpoint, "HF_TOKEN": token}
    command = [sys.executable, *container["command"][1:]]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def _model(folder: Path) -> dict[str, bytes]:
    place = folder / "Qwen--Qwen3.5--main"
    files = (path for path in place.rglob("*") if path.is_file())
    named = {str(path.relative_to(place)): path.read_bytes() for path in files}
    return {name: content for name, content in named.items() if not name.startswith(".")}


def test_a_download_ends_with_all_files_and_is_not_done_twice(tmp_path: Path) -> None:
    with _hub() as (endpoint, asked):
        done = _download(tmp_path, endpoint)
        assert done.returncode == 0, done.stderr
        assert _model(tmp_path) == FILES
        before = len(asked)
        again = _download(tmp_path, endpoint)
        assert (again.returncode, len(asked)) == (0, before)
    nobody = _download(tmp_path, endpoint)
    assert nobody.returncode == 0
    assert "is there already" in nobody.stdout


def test_a_download_that_broke_off_is_taken_up_again(tmp_path: Path) -> None:
    with _hub("weights/model.safetensors") as (endpoint, _):
        assert _download(tmp_path, endpoint).returncode != 0
    with _hub() as (endpoint, _):
        assert _download(tmp_path, endpoint).returncode == 0
    assert _model(tmp_path) == FILES


@pytest.mark.parametrize("token", ["", "wrong-secret-token"])
def test_a_refused_download_fails_and_tells_no_token(tmp_path: Path, token: str) -> None:
    with _hub() as (endpoint, _):
        done = _download(tmp_path, endpoint, token)
    assert done.returncode != 0
    assert "401" in done.stderr
    assert not token or token not in done.stdout + done.stderr
