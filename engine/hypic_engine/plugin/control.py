"""Questions to the scheduler process about its cache, over a Unix socket.

The first rank answers from a thread of its own; HTTP workers ask. One JSON line goes in; one line
or a stream of lines comes out. Touches nothing of the scheduler's but the ledger.
"""

import asyncio
import contextlib
import json
import logging
import threading
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

from ..contract import events
from ..core.ledger import Ledger

logger = logging.getLogger(__name__)

LINE_LIMIT_BYTES = 1 << 26
# Events of one burst travel together; a follower learns of them within this time.
LINGER_S = 0.02


class ControlServer:
    """Serves the ledger and a description of the engine."""

    def __init__(self, path: str, ledger: Ledger, describe: Callable[[], dict[str, Any]]) -> None:
        self._path = Path(path)
        self._ledger = ledger
        self._describe = describe
        self._loop = asyncio.new_event_loop()
        self._followers: set[asyncio.Event] = set()

    def start(self) -> None:
        """Serve from a daemon thread until the process ends."""
        self._ledger.listen(self._notify)
        threading.Thread(target=self._run, name="hypic-control", daemon=True).start()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        server = await asyncio.start_unix_server(self._answer, self._path)
        async with server:
            await server.serve_forever()

    def _notify(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for follower in self._followers:
            follower.set()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            question = json.loads(await reader.readline())
            match question["ask"]:
                case "info":
                    writer.write(json.dumps(self._describe()).encode() + b"\n")
                case "segments":
                    page = self._ledger.page(question["cursor"])
                    writer.write(events.encode_page(page) + b"\n")
                case "events":
                    await self._stream(writer, question["epoch"], question["after"])
                case other:
                    logger.error("Unknown question: %r", other)
            await writer.drain()
        except ConnectionError:
            logger.debug("Who asked about the cache left before the answer ended")
        except Exception:
            logger.exception("A question about the cache failed")
        finally:
            writer.close()

    async def _stream(self, writer: asyncio.StreamWriter, epoch: str, after: int | None) -> None:
        changed = asyncio.Event()
        self._followers.add(changed)
        try:
            now, seq = self._ledger.position()
            writer.write(events.encode(events.Hello(now, seq)))
            epoch, at = epoch or now, seq if after is None else after
            while True:
                lines = self._ledger.after(epoch, at)
                if lines is None:
                    writer.write(events.encode(events.Gap()))
                    return
                for line in lines:
                    writer.write(events.encode(line))
                at += len(lines)
                await writer.drain()
                await self._changed_or_alive(writer, changed, at)
        finally:
            self._followers.discard(changed)

    @staticmethod
    async def _changed_or_alive(
        writer: asyncio.StreamWriter, changed: asyncio.Event, at: int
    ) -> None:
        try:
            await asyncio.wait_for(changed.wait(), events.ALIVE_EVERY_S)
        except TimeoutError:
            writer.write(events.encode(events.Alive(at)))
        else:
            await asyncio.sleep(LINGER_S)
        changed.clear()


async def ask(path: str, question: dict[str, Any]) -> AsyncGenerator[bytes, None]:
    """The lines that the scheduler answers.

    Raises:
        OSError: the scheduler does not answer (not started yet, or gone).
    """
    reader, writer = await asyncio.open_unix_connection(path, limit=LINE_LIMIT_BYTES)
    try:
        writer.write(json.dumps(question).encode() + b"\n")
        await writer.drain()
        while line := await reader.readline():
            yield line
    finally:
        writer.close()
