"""The routes that tell where the router itself stands: alive, accepting, ready, described.

They need no key and no engine. Does not decide what makes an engine ready.
"""

import time
from collections.abc import Awaitable, Callable, Mapping

from . import errors
from .asking.relay import Tools
from .core.choose import candidates, nobody
from .guard.running import Running
from .show import openapi
from .wire.server import Connection

Route = Callable[[Connection], Awaitable[int]]

HEALTH, ACCEPTING, READY, OPENAPI = "/health", "/accepting", "/ready", "/openapi.json"
PATHS = frozenset((HEALTH, ACCEPTING, READY, OPENAPI))


class Standing:
    """Answers of the router about itself."""

    def __init__(self, model: str, tools: Tools, running: Running) -> None:
        self._description = openapi.document(model)
        self._store = tools.store
        self._running = running

    @property
    def routes(self) -> Mapping[str, Mapping[str, Route]]:
        """By path and method."""
        return {
            HEALTH: {"GET": self._health},
            ACCEPTING: {"GET": self._accepting},
            READY: {"GET": self._ready},
            OPENAPI: {"GET": self._openapi},
        }

    async def _health(self, connection: Connection) -> int:
        return await connection.send_json(200, b'{"status":"ok"}')

    async def _openapi(self, connection: Connection) -> int:
        return await connection.send_json(200, self._description)

    async def _accepting(self, connection: Connection) -> int:
        self._check_accepting()
        return await connection.send_json(200, b'{"status":"accepting"}')

    async def _ready(self, connection: Connection) -> int:
        self._check_accepting()
        snapshot = self._store.snapshot
        if not candidates(snapshot, (), time.monotonic()):
            raise errors.NoEngineError(nobody(snapshot, ()))
        return await connection.send_json(200, b'{"status":"ready"}')

    def _check_accepting(self) -> None:
        """Whether clients should be sent here, be it to hear that no engine is ready."""
        if self._running.leaving:
            raise errors.NotAcceptingError("the router is shutting down")
        if not self._store.known:
            raise errors.NotAcceptingError("the router has not heard yet which engines there are")
