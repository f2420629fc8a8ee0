"""Counts requests in and out of an HTTP process, and sends new ones away while the engine drains.

An ASGI middleware in the innermost place: who has no key is turned away before. Control routes and
probes pass by it uncounted.
"""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from .attendance import Attendance

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

RETRY_AFTER_S = 5
_METHODS = frozenset({"POST", "PUT"})
_HEADERS = (
    (b"content-type", b"application/json"),
    (b"retry-after", str(RETRY_AFTER_S).encode()),
    (b"x-hypic-draining", b"1"),
)
_BODY = json.dumps(
    {
        "error": {
            "message": "this engine drains and takes no new requests; ask another",
            "type": "engine_draining",
            "code": 503,
        }
    }
).encode()


class Door:
    """Wraps an ASGI application."""

    def __init__(self, app: App, *, attendance: Attendance, paths: frozenset[str]) -> None:
        self._app = app
        self._attendance = attendance
        self._paths = paths

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve, count and serve, or refuse."""
        if not self._is_work(scope):
            await self._app(scope, receive, send)
            return
        # Counted before the drain is looked at: who asks for a drain and then sees nobody inside
        # may be sure that nobody comes.
        with self._attendance.request():
            if self._attendance.drain_left_s is None:
                await self._app(scope, receive, send)
            else:
                await _refuse(send)

    def _is_work(self, scope: Message) -> bool:
        if scope["type"] != "http" or scope["method"] not in _METHODS:
            return False
        return scope["path"].removeprefix(scope.get("root_path", "")) in self._paths


async def _refuse(send: Send) -> None:
    headers = [*_HEADERS, (b"content-length", str(len(_BODY)).encode())]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": _BODY})
