"""The way back to a client that has to wait: keeps its stream alive, unseen by who answers.

A stream that has waited for a while is begun with comments, which clients ignore. From then on its
status is 200: an answer that is no stream, and an error, become its last event.
"""

import time
from collections.abc import Sequence
from http import HTTPStatus

from typing_extensions import override

from ..call import Caller, Reply
from ..core.sse import error_body, error_event
from ..errors import RouterError

HEARTBEAT_S = 10.0
HEARTBEAT = b": waiting\n\n"
STREAM = [("Content-Type", "text/event-stream"), ("Cache-Control", "no-cache")]


class Waiting(Caller):
    """A caller that can be kept waiting.

    Attributes:
        since_s: when it began to wait, by the monotonic clock.
    """

    def __init__(self, caller: Caller, *, stream: bool) -> None:
        self._caller = caller
        self._stream = stream
        self._reply: Reply | None = None
        self.since_s = time.monotonic()

    @property
    def begun(self) -> bool:
        """Whether the client has heard something already."""
        return self._reply is not None

    async def beat(self) -> None:
        """Tells a stream's client that it is not forgotten."""
        if self._stream:
            if self._reply is None:
                self._reply = await self._caller.begin(HTTPStatus.OK, STREAM, None)
            await self._reply.write(HEARTBEAT)

    @override
    async def begin(
        self, status: int, headers: Sequence[tuple[str, str]], length: int | None
    ) -> Reply:
        if self._reply is None:
            return await self._caller.begin(status, headers, length)
        kinds = [value for name, value in headers if name.lower() == "content-type"]
        if status == HTTPStatus.OK and kinds and kinds[0].startswith("text/event-stream"):
            return self._reply
        return _AsEvent(self._reply, status)

    async def fail(self, error: RouterError) -> int:
        """Ends a stream that has begun with an error; returns the status that was sent."""
        assert self._reply is not None
        await self._reply.write(error_event(error.body))
        await self._reply.end()
        return HTTPStatus.OK


class _AsEvent(Reply):
    """A whole answer as the last event of a stream."""

    def __init__(self, reply: Reply, status: int) -> None:
        self._reply = reply
        self._status = status
        self._data = bytearray()

    @override
    async def write(self, data: bytes) -> None:
        self._data += data

    @override
    async def end(self) -> None:
        body = bytes(self._data).replace(b"\n", b" ")
        if self._status >= HTTPStatus.BAD_REQUEST and not body.startswith(b'{"error"'):
            words = f"the engine answered {self._status}: {body[:500].decode('utf-8', 'replace')}"
            body = error_body(words, kind="server_error", param=None, code="engine_error")
        await self._reply.write(error_event(body))
        await self._reply.end()

    @override
    def abort(self) -> None:
        self._reply.abort()
