"""Answers at the engine's address while it starts, until SGLang's own server is there.

Says 503 to everybody, and how far the loading is. Knows no routes, and asks no scheduler.
"""

import json
import logging
import socket
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any

from .. import loading

logger = logging.getLogger(__name__)

RETRY_AFTER_S = 5
_STARTING = "the engine is starting"
_ALL_PERCENT = 100


class Early:
    """The server before the server.

    Args:
        folder: the engine's own, where its scheduler leaves how far it is.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: _Server | None = None

    def open(self, server_args: Any, *_: object, **__: object) -> None:
        """Before ``http_server.launch_server``: begin to answer.

        Not with TLS, whose keys are SGLang's, nor on further nodes, where SGLang itself answers.
        An address that cannot be had is no reason not to start: SGLang's server says what is wrong.
        """
        if server_args.node_rank or server_args.ssl_certfile:
            return
        host, port = server_args.host, server_args.port
        try:
            self._server = _Server((host, port), partial(_Answer, self._folder))
        except OSError as error:
            logger.warning("Nobody is told how far the loading is at %s:%d: %s", host, port, error)
            return
        serve = partial(self._server.serve_forever, poll_interval=0.05)
        threading.Thread(target=serve, name="hypic-early", daemon=True).start()

    def leave(self, server_args: Any, *_: object, **__: object) -> None:
        """Before ``http_server._setup_and_run_http_server``: leave the address to several servers.

        A single one binds it when its application has started; `leaving` closes just before that.
        """
        if server_args.tokenizer_worker_num > 1 or server_args.enable_http2:
            self.close()

    def close(self) -> None:
        """Leave the address."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], answer: Any) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, answer)

    def server_bind(self) -> None:
        """Without a question to the name service, which may be slow."""
        TCPServer.server_bind(self)

    def handle_error(self, *_: object) -> None:
        """Whoever asked has left."""


class _Answer(BaseHTTPRequestHandler):
    timeout = 1.0

    def __init__(self, folder: Path, *args: Any) -> None:
        self._folder = folder
        super().__init__(*args)

    def parse_request(self) -> bool:
        """Whatever is asked for, the answer is the same."""
        if super().parse_request():
            self._say(state(self._folder))
        return False

    def log_message(self, *_: object) -> None:
        """Probes come every few seconds."""

    def _say(self, said: dict[str, Any]) -> None:
        body = json.dumps(said).encode()
        self.close_connection = True
        self.send_response(503)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Retry-After", str(RETRY_AFTER_S))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def state(folder: Path) -> dict[str, Any]:
    """The body of the answer: a reason, and once weights are being read how many percent are."""
    percent = loading.told(folder)
    if percent is None:
        return {"ready": False, "reason": _STARTING}
    words = f"{percent} % of the weights are read"
    if percent == _ALL_PERCENT:
        words = "all weights are read, and what is left is being prepared"
    loaded = {"stage": "weights", "percent": percent}
    return {"ready": False, "reason": words, "loading": loaded}
