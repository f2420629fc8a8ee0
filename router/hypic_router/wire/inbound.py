"""One client's connection: its requests are served one after the other.

Does not know routes. A client that closes its side has left: what it asked for is cancelled.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from typing_extensions import override

from ..errors import BadHttpError
from .flow import Alarm, Flow
from .reading import Reading
from .request import Request
from .response import Response

# A connection without a request ends after this.
IDLE_S = 75.0
# What a client that was refused still sends is read for a while: closing at once could take the
# answer from it.
LINGER_S = 5.0
# Requests that may wait on one connection for those before them.
PIPELINED = 32
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Serving:
    """What every connection of a server works with.

    Attributes:
        handle: answers one request; an answer that it leaves unfinished ends the connection.
        refuse: answers what is no request.
        head_bytes: of a request's line and headers together.
        head_s: for them to arrive.
        read_s: for a client that does not read to go on.
        open: the connections there are.
    """

    handle: Callable[["Inbound", Request], Awaitable[None]]
    refuse: Callable[[BadHttpError], bytes]
    head_bytes: int
    head_s: float
    read_s: float
    open: set["Inbound"] = field(default_factory=set)


class Inbound(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._flow = Flow(patience_s=serving.read_s)
        self._requests = Reading(
            head_bytes=serving.head_bytes,
            begun=self._begun,
            taken=self._steer,
            proceed=lambda: self._transport.write(CONTINUE),
        )
        self._waiting: deque[Request] = deque()
        self._task: asyncio.Task[None] | None = None
        self._response: Response | None = None
        self._refusal: BadHttpError | None = None
        self._hearing = True
        self._closing = False
        self._paused = False

    @property
    def task(self) -> asyncio.Task[None] | None:
        """What answers the current request; ``None`` when there is none."""
        return self._task

    def close(self) -> None:
        """Ends the connection, and with it what is being answered."""
        if self._task is None:
            self._transport.close()
        else:
            self._transport.abort()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not registered as asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._serving.open.add(self)
        self._alarm = Alarm(self._late)
        self._alarm.set_in(self._serving.head_s)

    @override
    def connection_lost(self, exc: BaseException | None) -> None:
        self._serving.open.discard(self)
        self._alarm.end()
        self._flow.lose()
        if self._task is not None:
            self._task.cancel()

    @override
    def pause_writing(self) -> None:
        self._flow.pause()

    @override
    def resume_writing(self) -> None:
        self._flow.resume()

    @override
    def eof_received(self) -> None:
        if self._task is not None:
            self._transport.abort()

    @override
    def data_received(self, data: bytes) -> None:
        if not self._hearing:
            return
        was_in_head = self._requests.in_head
        try:
            self._hearing = self._requests.feed(data)
        except BadHttpError as error:
            self._hearing = False
            if not self._requests.fail(error):
                self._refusal = error
                if self._task is None:
                    self._refuse()
            return
        if self._requests.in_head and not was_in_head and self._task is None:
            self._alarm.set_in(self._serving.head_s)
        self._steer()

    def _late(self) -> None:
        """A head, another request or the client's reading did not come in time."""
        if self._transport.get_write_buffer_size():
            self._transport.abort()
        else:
            self._transport.close()

    def _steer(self) -> None:
        """Reads on unless requests or too much of a body wait; a paused socket hides a leaving."""
        pause = self._hearing and (bool(self._waiting) or self._requests.crowded)
        if pause != self._paused and not self._transport.is_closing():
            self._paused = pause
            if pause:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _begun(self, request: Request) -> None:
        if self._task is None:
            self._start(request)
        elif len(self._waiting) < PIPELINED:
            self._waiting.append(request)
        else:
            raise BadHttpError("too many requests wait on this connection")

    def _start(self, request: Request) -> None:
        self._alarm.off()
        self._response = None
        self._task = asyncio.get_running_loop().create_task(self._answer(request))
        self._task.add_done_callback(lambda task: self._answered(task, request))

    async def _answer(self, request: Request) -> None:
        await self._serving.handle(self, request)
        await self._flow.room()
        self._alarm.set_in(IDLE_S)

    def _answered(self, task: asyncio.Task[None], request: Request) -> None:
        """What comes after an answer: the next request, or an end."""
        self._task = None
        failed = task.cancelled() or task.exception() is not None
        if failed or self._response is None or not self._response.ended:
            self._transport.abort()
        elif self._transport.is_closing():
            return
        elif not request.body.complete:
            self._linger()
        elif self._closing:
            self._transport.close()
        elif self._waiting:
            self._start(self._waiting.popleft())
            self._steer()
        elif self._refusal is not None:
            self._refuse()

    def _refuse(self) -> None:
        """Answers what is no request."""
        assert self._refusal is not None
        self._transport.write(self._serving.refuse(self._refusal))
        self._linger()

    def _linger(self) -> None:
        """Lets the client read the answer before the connection ends."""
        self._hearing = False
        self._steer()
        self._alarm.set_in(LINGER_S)
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def respond(
        self,
        request: Request,
        status: int,
        headers: Sequence[tuple[str, str]],
        *,
        length: int | None,
        closing: bool,
    ) -> Response:
        """Begins an answer, which says itself how its body and its connection end."""
        unframed = length is None and not request.chunks
        self._closing |= closing or unframed
        self._closing |= not (request.persistent and request.body.complete)
        self._response = Response(
            self._transport,
            self._flow,
            request,
            status,
            headers,
            length=length,
            closing=self._closing,
        )
        return self._response
