"""One connection to an engine: one request at a time, its answer read as it comes.

Does not know which connection to use, nor what an answer means.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import cast

import httptools
from multidict import CIMultiDict
from typing_extensions import override

from ..errors import BrokenError, EngineError, StaleError
from .flow import Alarm

# So much of an answer waits here before the engine is slowed down.
READ_BYTES = 1 << 16
# An engine's head may be as long as a mesh beside it makes it.
HEAD_BYTES = 1 << 16
# A body up to this is sent in one piece with its head.
COPIED_BYTES = 1 << 16
# Engines close idle connections after five seconds; leaving first avoids most races.
KEEP_ALIVE_S = 4.0


class Outbound(asyncio.Protocol):
    """One connection to an engine.

    Attributes:
        status: of the answer.
        headers: of the answer, in Latin-1, which keeps every byte.
        complete: whether the answer has been received to its end.
    """

    def __init__(self, ended: Callable[["Outbound"], None]) -> None:
        """Starts unconnected.

        Args:
            ended: called once, when the connection is gone.
        """
        self._ended = ended
        self._parser = httptools.HttpResponseParser(self)
        self._uses = 0
        self._asked = False
        self._begun = False
        self._error: EngineError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._begin()

    def _begin(self) -> None:
        """Before an answer."""
        self.status = 0
        self.headers: CIMultiDict[str] = CIMultiDict()
        self.complete = False
        self._pairs: list[tuple[str, str]] = []
        self._head_bytes = 0
        self._pieces: list[bytes] = []
        self._n_waiting = 0
        self._paused = False
        self._persistent = False
        self._until_closed = False

    @property
    def reusable(self) -> bool:
        """Whether it can take another request."""
        settled = self.complete and self._persistent and self._error is None
        return settled and not self._pieces and not self._transport.get_write_buffer_size()

    def send(self, head: bytes, body: bytes) -> None:
        """Sends a request."""
        self._alarm.off()
        self._uses += 1
        self._asked = True
        self._begun = False
        self._begin()
        if len(body) > COPIED_BYTES:
            self._transport.write(head)
            self._transport.write(body)
        else:
            self._transport.write(head + body)

    async def begun(self) -> None:
        """Waits for the answer's head.

        Raises:
            StaleError: a used connection broke before anything came.
            BrokenError: a new one did, or what came is not HTTP.
        """
        while not self.status:
            await self._news()

    async def read(self) -> bytes:
        """The bytes that came since; none at the end of the body.

        Raises:
            BrokenError: the connection ended before the body did.
        """
        while not self._pieces and not self.complete:
            await self._news()
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._n_waiting = 0
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        return data

    def rest(self) -> None:
        """Waits for another request; for a while."""
        self._alarm.set_in(KEEP_ALIVE_S)

    def close(self) -> None:
        """Ends the connection at once, which tells the engine to abort."""
        self._transport.abort()

    async def _news(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: EngineError) -> None:
        if self._error is None:
            self._error = error
        self._transport.abort()
        self._wake()

    # The transport's calls.

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not registered as asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._alarm = Alarm(self.close)

    @override
    def data_received(self, data: bytes) -> None:
        if not self._asked:
            self.close()  # nobody asked: a server that tires of waiting says so
            return
        self._begun = True
        self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(BrokenError(f"the engine's answer is not HTTP: {error}"))
            return
        if not self.status and self._head_bytes > HEAD_BYTES:
            self._fail(BrokenError("the head of the engine's answer is too long"))
            return
        if self._n_waiting > READ_BYTES and not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    @override
    def connection_lost(self, exc: BaseException | None) -> None:
        self._alarm.end()
        if self._until_closed and exc is None:
            self.complete = True
        if self._error is None:
            words = exc.strerror if isinstance(exc, OSError) and exc.strerror else "closed"
            self._error = (
                StaleError(f"the engine had closed the connection: {words}")
                if self._uses > 1 and not self._begun
                else BrokenError(f"the engine broke the connection: {words}")
            )
        self._wake()
        self._ended(self)

    # The parser's calls, in the order of a message.

    def on_message_begin(self) -> None:
        """An answer begins, which must not be a second one."""
        if not self._asked:
            raise BrokenError("the engine answered twice")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which nobody reads."""
        self._pairs.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        """The head is whole; one of an interim answer is followed by another."""
        status = self._parser.get_status_code()
        if status < HTTPStatus.OK:
            return
        self.headers = CIMultiDict(self._pairs)
        bodiless = status in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
        framed = "content-length" in self.headers or "transfer-encoding" in self.headers
        self._until_closed = not framed and not bodiless
        self._persistent = self._parser.should_keep_alive()
        self.status = status

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        self._pieces.append(data)
        self._n_waiting += len(data)

    def on_message_complete(self) -> None:
        """The body is whole, or an interim answer is."""
        self._pairs = []
        self.complete = self.status > 0
        self._asked = not self.complete
