"""Engines and routers that speak the routes of a drain, on loopback addresses like pods'."""

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ENGINE_PORT = 30_000
METRICS_PORT = 9_090
_NUMBERS = itertools.count(1)


def address() -> str:
    """A loopback address that no other pod of this process has."""
    number = next(_NUMBERS)
    return f"127.77.{number // 250}.{number % 250 + 1}"


@dataclass
class PlayedEngine:
    """What an engine knows of its drain.

    Attributes:
        running: requests it answers.
        draining: whether it takes no new ones.
        told: what it was told, in order.
        answers: whether it answers for a drain.
        left_s: seconds that its drain has left; None where it does not say.
        metrics: what it counts, as text.
        loading: how far it is with the model; None when it does not say.
    """

    address: str = field(default_factory=address)
    running: int = 0
    draining: bool = False
    told: list[str] = field(default_factory=list)
    answers: bool = True
    left_s: float | None = None
    metrics: str = ""
    loading: dict[str, Any] | None = None

    def answer(self, verb: str, path: str, body: Any) -> tuple[int, Any]:
        if path == "/metrics":
            return 200, self.metrics
        if path == "/pic/ready":
            return 503, {"ready": False, "reason": "starting", "loading": self.loading}
        if path != "/pic/drain" or not self.answers:
            return 404, {}
        if verb != "GET":
            self.draining = verb == "POST"
            self.told.append(f"{verb} {body['deadline_s']:.0f}" if body else verb)
        said = {"running": self.running, "queued": 0, "transfers": 0, "oldest_s": 41.2}
        return 200, {"draining": self.draining, "left_s": self.left_s, **said}


@dataclass
class PlayedRouter:
    """What a router shows of the engines it knows.

    Attributes:
        engines: whether each is draining, by the pod's name.
        requests: what each of them answers.
        held: requests that wait for engines to wake.
        answers: whether it answers at all.
    """

    address: str = field(default_factory=address)
    engines: dict[str, bool] = field(default_factory=dict)
    requests: int = 0
    held: int = 0
    answers: bool = True

    def answer(self, _verb: str, path: str, _body: Any) -> tuple[int, Any]:
        shown = [
            {"name": name, "draining": value, "requests": self.requests}
            for name, value in self.engines.items()
        ]
        said = {"engines": shown, "held_requests": self.held, "queued_requests": 0}
        return (200, said) if path == "/fleet" and self.answers else (404, {})


@contextmanager
def listening(*played: PlayedEngine | PlayedRouter) -> Iterator[None]:
    """Have them answer, each at its address, until the block ends."""
    servers = [_server(item) for item in played]
    try:
        yield
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


def _server(played: PlayedEngine | PlayedRouter) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, said = played.answer(self.command, self.path, body)
            raw = (said if isinstance(said, str) else json.dumps(said)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815  names of the base class

        def log_message(self, *_: Any) -> None:
            return

    port = ENGINE_PORT if isinstance(played, PlayedEngine) else METRICS_PORT
    server = ThreadingHTTPServer((played.address, port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server
