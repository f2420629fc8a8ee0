"""The command of a container's preStop, against an engine's answers."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from hypic_engine.drain import main

EMPTY = {"draining": True, "running": 0, "queued": 0, "transfers": 0, "oldest_s": 0, "left_s": 30}


@contextmanager
def answering(*answers, key=""):
    """An engine that gives these answers, the last one for ever; what it was asked is noted."""
    left, asked = list(answers), []

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            asked.append((self.command, self.path, json.loads(body) if body else None))
            is_known = not key or self.headers.get("authorization") == f"Bearer {key}"
            status, fields = (left.pop(0) if left[1:] else left[0]) if is_known else (401, {})
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(fields).encode())

        do_GET = do_POST = answer  # noqa: N815 - names of the standard library

        def log_message(self, *_):
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def test_it_asks_once_and_waits_until_nothing_is_inside():
    busy = EMPTY | {"running": 1}
    sending = EMPTY | {"transfers": 2}
    with answering((200, busy), (200, sending), (200, EMPTY)) as (url, asked):
        assert main(["--url", url, "--deadline-s", "30"]) == 0
    assert asked == [
        ("POST", "/pic/drain", {"deadline_s": 30.0}),
        ("GET", "/pic/drain", None),
        ("GET", "/pic/drain", None),
    ]


def test_at_the_deadline_it_says_what_is_left(capsys):
    with answering((200, EMPTY | {"running": 3})) as (url, _):
        assert main(["--url", url, "--deadline-s", "0.2"]) == 1
    assert '"running": 3' in capsys.readouterr().err


def test_it_waits_no_longer_than_a_drain_that_began_before_has_left(capsys):
    nearly_over = EMPTY | {"running": 3, "left_s": 0.2}
    over = EMPTY | {"running": 3, "left_s": -1.0}
    with answering((200, nearly_over), (200, over)) as (url, _):
        assert main(["--url", url, "--deadline-s", "3600"]) == 1
    assert '"left_s": -1.0' in capsys.readouterr().err


def test_a_key_is_read_from_a_mounted_file(tmp_path, capsys):
    (tmp_path / "key").write_text("secret\n")
    with answering((200, EMPTY), key="secret") as (url, _):
        assert main(["--url", url, "--deadline-s", "5", "--key-file", str(tmp_path / "key")]) == 0
        assert main(["--url", url, "--deadline-s", "5"]) == 1
    assert "401" in capsys.readouterr().err


def test_an_engine_that_is_gone_is_empty_and_one_without_the_route_is_an_error(capsys):
    with answering((404, {"detail": "Not Found"})) as (url, _):
        assert main(["--url", url, "--deadline-s", "5"]) == 1
    assert "404" in capsys.readouterr().err
    assert main(["--url", url, "--deadline-s", "5"]) == 0
