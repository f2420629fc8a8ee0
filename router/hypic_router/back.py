"""The metrics port: what the router knows, for Prometheus, the operator and people.

Changes nothing and is not for clients.
"""

import json
import time
from typing import Any

from . import errors
from .asking.relay import Tools
from .guard.admission import Admission
from .guard.running import Running
from .settings import Settings
from .show.page import Shown, page
from .show.table import published
from .wire.bodies import Bodies
from .wire.server import Connection

PAGE = [
    ("Content-Type", "text/html; charset=utf-8"),
    ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"),
    ("X-Content-Type-Options", "nosniff"),
]
EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"


class Back:
    """The metrics port, which is not for clients."""

    def __init__(
        self,
        settings: Settings,
        tools: Tools,
        running: Running,
        bodies: Bodies,
        admission: Admission,
    ) -> None:
        self._settings = settings
        self._tools = tools
        self._running = running
        self._bodies = bodies
        self._admission = admission

    async def serve(self, connection: Connection) -> None:
        """Answers ``/``, ``/metrics`` and ``/fleet``."""
        request = connection.request
        match request.method, request.path:
            case "GET" | "HEAD", "/metrics":
                await connection.send(200, [("Content-Type", EXPOSITION)], self._metrics())
            case "GET" | "HEAD", "/":
                await connection.send(200, PAGE, self._page())
            case "GET" | "HEAD", "/fleet":
                await connection.send_json(200, json.dumps(self._fleet()).encode())
            case "GET" | "HEAD", "/health":
                await connection.send_json(200, b'{"status":"ok"}')
            case _:
                error = errors.NotFoundError(f"there is no {request.path[:200]} here")
                await connection.send_json(error.status, error.body)

    def _metrics(self) -> bytes:
        return self._tools.metrics.text(
            self._tools.store.snapshot,
            running=self._running.count,
            queued=self._admission.queued,
            held=self._admission.held,
            body_bytes=self._bodies.n_bytes,
        )

    def _page(self) -> bytes:
        store = self._tools.store
        counts = {
            "running": self._running.count,
            "queued": self._admission.queued,
            "held": self._admission.held,
        }
        names = (self._settings.names.model, self._settings.policy)
        return page(store.snapshot, Shown(*names, counts, store.recent, time.monotonic()))

    def _fleet(self) -> dict[str, Any]:
        snapshot = self._tools.store.snapshot
        return {
            "model": self._settings.names.model,
            "policy": self._settings.policy,
            "bytes_per_token": round(snapshot.rates.bytes_per_token, 3),
            "fill_tokens_per_s": round(snapshot.rates.fill_tokens_per_s),
            "held_requests": self._admission.held,
            "queued_requests": self._admission.queued,
            "engines": published(snapshot, time.monotonic()),
        }
