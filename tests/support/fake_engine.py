"""A small real HTTP server that speaks an engine's routes and can fail in every way an engine can.

It keeps what it was told in the segments of prompts, as an engine's cache would, and tells of it on
``/pic/events``. What it does with a generating request is `FakeEngine.behave`, one of the functions
below or a test's own.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self

from hypic_engine.contract import events
from hypic_engine.contract.events import Hello, Item, Line, Page
from hypic_engine.contract.segments import DEFAULT_SEPARATOR, split, text_digest

from .wire import Request, read_request, reset

GENERATING = ("/v1/chat/completions", "/v1/completions", "/generate")
SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
END = b"0\r\n\r\n"


def plain(status: int, value: Any, *extra: bytes, kind: bytes = b"application/json") -> bytes:
    """A whole answer."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    head = b"HTTP/1.1 %d Said\r\nContent-Type: %s\r\nContent-Length: %d\r\n" % (
        status,
        kind,
        len(body),
    )
    return head + b"".join(line + b"\r\n" for line in extra) + b"\r\n" + body


def chunk(data: bytes) -> bytes:
    """One HTTP chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(value: Any) -> bytes:
    """One event of a stream, in a chunk."""
    return chunk(
        b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"
    )


def token(text: str, finish: str | None = None) -> dict[str, Any]:
    """One chat stream event."""
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": finish}
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "tiny",
        "choices": [choice],
    }


@dataclass(eq=False)
class Turn:
    """One generating request at the fake engine."""

    engine: "FakeEngine"
    request: Request
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    used: bool
    cached: int = 0

    async def send(self, *data: bytes) -> None:
        for one in data:
            self.writer.write(one)
            await self.writer.drain()

    async def left(self) -> None:
        """Waits until the router closes the connection."""
        await self.reader.read()


Behaviour = Callable[[Turn], Awaitable[bool | None]]


async def answers(turn: Turn) -> None:
    """A right answer: three tokens, streamed if asked."""
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 3,
        "total_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": turn.cached},
    }
    if not turn.request.json().get("stream"):
        await turn.send(plain(200, turn.engine.answer("abc", usage, turn.request)))
        return
    await turn.send(SSE_HEAD, *(event(token(text)) for text in "ab"), event(token("c", "stop")))
    if (turn.request.json().get("stream_options") or {}).get("include_usage"):
        await turn.send(event({**token(""), "choices": [], "usage": usage}))
    await turn.send(event(b"[DONE]"), END)


async def resets_at_once(turn: Turn) -> bool:
    """Killed before the first byte."""
    reset(turn.writer)
    return True


async def hangs(turn: Turn) -> bool:
    """Reads the request and says nothing; ends when the router leaves."""
    await turn.left()
    return True


async def streams_for_ever(turn: Turn) -> bool:
    """A token every few milliseconds until the router leaves."""
    await turn.send(SSE_HEAD)
    leaving = asyncio.ensure_future(turn.left())
    while not leaving.done():
        await turn.send(event(token("x")))
        await asyncio.wait({leaving}, timeout=0.005)
    await leaving
    return True


def breaks_off(how: str) -> Behaviour:
    """Two tokens, then the end of the world: reset, close, half_event, silence or no_done."""

    async def behave(turn: Turn) -> bool:
        await turn.send(SSE_HEAD, event(token("a")), event(token("b")))
        if how == "half_event":
            await turn.send(chunk(b'data: {"id":"c1","cho'))
        if how == "no_done":
            await turn.send(END)
            return False
        if how == "silence":
            await turn.left()
        if how in ("reset", "half_event"):
            await asyncio.sleep(
                0.05
            )  # let the bytes leave the kernel before the reset discards them
            reset(turn.writer)
        return True

    return behave


def says(answer: bytes, *, close: bool = False) -> Behaviour:
    """These very bytes."""

    async def behave(turn: Turn) -> bool:
        await turn.send(answer)
        return close

    return behave


@dataclass
class FakeEngine:
    """One engine on a port of its own."""

    model: str = "tiny"
    separator: str = DEFAULT_SEPARATOR
    pic: bool = True
    behave: Behaviour = answers
    ready: tuple[int, Any] = (200, {"ready": True})
    epoch: str = "e1"
    seq: int = 0
    page_items: int = 2
    host: str = "127.0.0.1"
    port: int = 0
    alive_every_s: float = 0.2
    keys: dict[str, Item] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    seen: list[Request] = field(default_factory=list)
    finished: int = 0
    running: int = 0
    forgets_events_before: int = 0

    async def __aenter__(self) -> Self:
        self._followers: set[asyncio.Queue[bytes | None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._serve, self.host, self.port, limit=1 << 25)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Stops as a killed process does."""
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def generated(self) -> list[Request]:
        return [request for request in self.seen if request.path in GENERATING]

    @property
    def followers(self) -> int:
        return len(self._followers)

    def answer(self, text: str, usage: dict[str, Any], request: Request) -> dict[str, Any]:
        if request.path == "/generate":
            return {
                "text": text,
                "meta_info": {"cached_tokens": usage["prompt_tokens_details"]["cached_tokens"]},
            }
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "text": text, "finish_reason": "stop"}
        kind = "chat.completion" if "chat" in request.path else "text_completion"
        return {
            "id": "c1",
            "object": kind,
            "created": 1,
            "model": self.model,
            "choices": [choice],
            "usage": usage,
        }

    def digest(self, text: str) -> str:
        return text_digest(text, model=self.model)

    def store(self, *texts: str) -> None:
        """Holds these segments from now on, and says so."""
        for text in texts:
            digest = self.digest(text)
            if digest not in self.keys:
                self.keys[digest] = Item(digest, (digest,), len(text), 8 * len(text))
                self.tell(lambda seq, d=digest: events.Stored(seq, self.keys[d]))

    def evict(self, text: str) -> None:
        digest = self.digest(text)
        del self.keys[digest]
        self.tell(lambda seq: events.Removed(seq, digest))

    def clear(self, epoch: str) -> None:
        """Starts another epoch with an empty cache, as after a flush."""
        self.keys.clear()
        self.lines.clear()
        self.epoch, self.seq = epoch, 0
        self.hang_up()

    def tell(self, line: Callable[[int], Line]) -> None:
        self.seq += 1
        made = line(self.seq)
        self.lines.append(made)
        self.push(events.encode(made))

    def push(self, data: bytes) -> None:
        """Sends bytes to every follower, right or wrong."""
        for follower in self._followers:
            follower.put_nowait(data)

    def hang_up(self) -> None:
        """Ends every event stream."""
        for follower in self._followers:
            follower.put_nowait(None)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        used = False
        try:
            while True:
                request = await read_request(reader)
                self.seen.append(request)
                if await self._answer(request, reader, writer, used=used):
                    break
                used = True
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answer(
        self,
        request: Request,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        used: bool,
    ) -> bool:
        """Whether the connection is to be closed."""
        if request.path in GENERATING:
            self.running += 1
            try:
                turn = Turn(self, request, reader, writer, used, self._use(request))
                close = bool(await self.behave(turn))
                self.finished += not close
            finally:
                self.running -= 1
            return close
        if request.path == "/pic/events" and self.pic:
            await self._stream_events(request, writer)
            return True
        writer.write(self._said(request))
        await writer.drain()
        return False

    def _said(self, request: Request) -> bytes:
        match request.method, request.path:
            case "GET", "/pic/ready" if self.pic:
                return plain(*self.ready)
            case "GET", "/health":
                return plain(*self.ready)
            case "GET", "/pic/segments" if self.pic:
                return plain(200, events.encode_page(self._page(request.target)))
            case "GET", "/v1/models":
                return plain(
                    200, {"object": "list", "data": [{"id": self.model, "object": "model"}]}
                )
            case "POST", "/v1/embeddings":
                item = {"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}
                return plain(200, {"object": "list", "data": [item], "model": self.model})
            case "POST", "/tokenize":
                return plain(200, {"tokens": [1, 2, 3], "count": 3})
            case _:
                return plain(404, {"detail": "Not Found"})

    def _page(self, target: str) -> Page:
        cursor = int(target.partition("cursor=")[2] or 0)
        items = list(self.keys.values())
        following = cursor + self.page_items
        more = str(following) if following < len(items) else None
        return Page(self.epoch, self.seq, tuple(items[cursor:following]), more)

    def _use(self, request: Request) -> int:
        """Keeps the prompt's segments; returns the tokens of those that were there."""
        try:
            body = json.loads(request.body)
            said = [message["content"] for message in body.get("messages") or ()]
        except (ValueError, TypeError, KeyError):  # an engine would refuse it
            return 0
        text = body.get("text") or body.get("prompt")
        text = text or "".join(one for one in said if isinstance(one, str))
        if not isinstance(text, str) or not self.pic:
            return 0
        pieces = split(text, self.separator)[:-1]
        cached = sum(len(piece) for piece in pieces if self.digest(piece) in self.keys)
        self.store(*pieces)
        return cached

    async def _stream_events(self, request: Request, writer: asyncio.StreamWriter) -> None:
        query = dict(pair.split("=") for pair in request.target.partition("?")[2].split("&"))
        after = int(query.get("after") or 0)
        writer.write(SSE_HEAD.replace(b"text/event-stream", b"application/x-ndjson"))
        writer.write(chunk(events.encode(Hello(self.epoch, self.seq))))
        if query.get("epoch") != self.epoch or after < self.forgets_events_before:
            writer.write(chunk(events.encode(events.Gap())) + END)
            await writer.drain()
            return
        follower: asyncio.Queue[bytes | None] = asyncio.Queue()
        for line in self.lines:
            if line.seq > after:
                follower.put_nowait(events.encode(line))
        self._followers.add(follower)
        try:
            while True:
                try:
                    async with asyncio.timeout(self.alive_every_s):
                        data = await follower.get()
                except TimeoutError:
                    data = events.encode(events.Alive(self.seq))
                if data is None:
                    return
                writer.write(chunk(data))
                await writer.drain()
        finally:
            self._followers.discard(follower)
