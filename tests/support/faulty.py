"""Stands between the operator and the API server, and answers in its place as a test says.

Changes nothing of what it passes on.
"""

import asyncio
import contextlib
import dataclasses
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import aiohttp
from aiohttp import web

from . import apiserver
from .apiserver import ApiServer

_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request.

    Attributes:
        verb: its method; WATCH for a watch.
        path: with its query.
        at_s: when it came, on the loop's clock.
    """

    verb: str
    path: str
    at_s: float

    @property
    def writes(self) -> bool:
        return self.verb not in {"GET", "WATCH"}


@dataclass(frozen=True, slots=True)
class Fault:
    """What is answered instead."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)


Decide = Callable[[Asked], Fault | None]


class Faulty:
    """A server that passes requests on, except those for which it is told an answer.

    Args:
        server: the real one.
        decide: the answer to a request; None to pass it on. May be set anew at any time.
    """

    def __init__(self, server: ApiServer, decide: Decide = lambda _: None) -> None:
        self.decide = decide
        self.asked: list[Asked] = []
        self._server = server
        self._port = 0
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._up = threading.Event()
        self._watches: list[web.BaseRequest] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._up.wait(30), "the proxy did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)

    def kubeconfig(self) -> Path:
        """A file for the operator, which leads here."""
        here = dataclasses.replace(self._server, url=f"http://127.0.0.1:{self._port}")
        return here.kubeconfig(apiserver.OPERATOR)

    def cut_watches(self) -> int:
        """End all watches without a word; returns how many."""
        watches = list(self._watches)
        self._loop.call_soon_threadsafe(lambda: [_abort(request) for request in watches])
        return len(watches)

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        # TLS connections end in a few turns of the loop after they are closed.
        self._loop.run_until_complete(asyncio.sleep(0.2))
        self._loop.close()

    async def _serve(self) -> None:
        context = ssl.create_default_context(cafile=str(self._server.ca_file))
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
            self._session = session
            runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self._port = runner.addresses[0][1]
            self._up.set()
            await self._stop.wait()
            await runner.cleanup()
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        watch = request.query.get("watch") == "true"
        verb = "WATCH" if watch else request.method
        asked = Asked(verb, request.path_qs, self._loop.time())
        self.asked.append(asked)
        fault = self.decide(asked)
        if fault is not None:
            return web.Response(status=fault.status, headers=fault.headers, text="as the test says")
        if watch:
            self._watches.append(request)
        try:
            return await self._passed_on(request)
        finally:
            self._watches = [item for item in self._watches if item is not request]

    async def _passed_on(self, request: web.BaseRequest) -> web.StreamResponse:
        headers = {key: value for key, value in request.headers.items() if key.lower() not in _HOP}
        url, body = self._server.url + request.raw_path, await request.read()
        async with self._session.request(
            request.method, url, headers=headers, data=body or None
        ) as answer:
            kept = {key: text for key, text in answer.headers.items() if key.lower() not in _HOP}
            passed = web.StreamResponse(status=answer.status, headers=kept)
            with contextlib.suppress(ConnectionError):  # the operator has left
                await passed.prepare(request)
                async for chunk in answer.content.iter_any():
                    await passed.write(chunk)
                await passed.write_eof()
            return passed


def _abort(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()
