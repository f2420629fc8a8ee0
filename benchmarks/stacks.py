"""HTTP servers and clients for Python, compared as the path of this router.

    make bench-stacks            # or: python benchmarks/stacks.py [--seconds 3] [--only wire,...]

Each stack is a proxy in a process of its own on one core. All do what the router does to a request:
read the body, find segments and name them, choose an engine, send the very bytes on over a kept
connection, pass status, headers and body back as they come. Engine and load are those of `load.py`,
on another core where there is one. Prints requests and stream chunks a second, and the proxy's own
processor time for each, which a busy machine disturbs less.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import load
import uvloop

from hypic_router.core.choose import choose
from hypic_router.core.prompt import Endpoint, Names, prompt
from hypic_router.core.score import POLICIES
from hypic_router.core.workers import Address, Fleet, Health, State, Worker

ENGINE_PORT, PROXY_PORT = 17_190, 17_191
ENGINE = f"http://127.0.0.1:{ENGINE_PORT}"
NAMES = Names("m", load.SEP, 512)
FLEET = Fleet((Worker(Address("e", ENGINE), Health(State.READY, "")),))
HOP = (b"transfer-encoding", b"connection", b"content-length")


def chosen(body: bytes) -> str:
    """The router's own work: segments, digests, choice."""
    wanted = prompt(Endpoint.GENERATE, body, NAMES)
    choice = choose(wanted, FLEET, POLICIES["segment"], turn=0, now_s=0.0)
    assert choice is not None
    return choice.worker.at.url


def aiohttp_client() -> Callable[[bytes], AsyncIterator[Any]]:
    import aiohttp

    made: list[aiohttp.ClientSession] = []

    async def ask(body: bytes) -> AsyncIterator[Any]:
        if not made:
            connector = aiohttp.TCPConnector(limit=0)
            made.append(aiohttp.ClientSession(connector=connector, auto_decompress=False))
        headers = {"Content-Type": "application/json"}
        async with made[0].post(chosen(body) + "/generate", data=body, headers=headers) as answer:
            yield answer.status, answer.raw_headers
            while piece := await answer.content.readany():
                yield piece

    return ask


def httpx_client() -> Callable[[bytes], AsyncIterator[Any]]:
    import httpx

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    client = httpx.AsyncClient(limits=limits, timeout=None)

    async def ask(body: bytes) -> AsyncIterator[Any]:
        headers = {"Content-Type": "application/json"}
        async with client.stream(
            "POST", chosen(body) + "/generate", content=body, headers=headers
        ) as answer:
            yield answer.status_code, answer.headers.raw
            async for piece in answer.aiter_raw():
                yield piece

    return ask


def httpcore_client() -> Callable[[bytes], AsyncIterator[Any]]:
    import httpcore

    pool = httpcore.AsyncConnectionPool(max_connections=None, max_keepalive_connections=None)

    async def ask(body: bytes) -> AsyncIterator[Any]:
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        headers["Host"] = "127.0.0.1"
        async with pool.stream(
            "POST", chosen(body) + "/generate", content=body, headers=headers
        ) as answer:
            yield answer.status, answer.headers
            async for piece in answer.aiter_stream():
                yield piece

    return ask


def asgi(ask: Callable[[bytes], AsyncIterator[Any]]) -> Callable[..., Awaitable[None]]:
    """The proxy as an ASGI application without a framework."""

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        pieces, more = [], True
        while more:
            event = await receive()
            pieces.append(event.get("body", b""))
            more = event.get("more_body", False)
        answer = ask(b"".join(pieces))
        status, headers = await anext(answer)
        kept = [(k.lower(), v) for k, v in headers if k.lower() not in HOP[:2]]
        await send({"type": "http.response.start", "status": status, "headers": kept})
        async for piece in answer:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    return app


def uvicorn_server(ask: Callable[[bytes], AsyncIterator[Any]]) -> None:
    import uvicorn

    uvicorn.run(
        asgi(ask),
        host="127.0.0.1",
        port=PROXY_PORT,
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="error",
    )


granian_app = asgi(aiohttp_client())


def granian_server() -> None:
    flags = ["--interface", "asgi", "--loop", "uvloop", "--no-ws", "--log-level", "error"]
    flags += ["--host", "127.0.0.1", "--port", str(PROXY_PORT)]
    flags += ["--working-dir", str(Path(__file__).resolve().parent), "stacks:granian_app"]
    os.execv(sys.executable, [sys.executable, "-m", "granian", *flags])


async def aiohttp_server() -> None:
    from aiohttp import web

    ask = aiohttp_client()

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        answer = ask(await request.read())
        status, headers = await anext(answer)
        response = web.StreamResponse(status=status)
        for name, value in headers:
            if name.lower() not in HOP:
                response.headers.add(name.decode(), value.decode())
            elif name.lower() == HOP[2]:
                response.content_length = int(value)
        if response.content_length is None:
            response.enable_chunked_encoding()
        await response.prepare(request)
        async for piece in answer:
            await response.write(piece)
        await response.write_eof()
        return response

    runner = web.ServerRunner(web.Server(handle, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", PROXY_PORT, backlog=1024).start()
    await asyncio.Event().wait()


async def wire_server() -> None:
    from hypic_router.settings import Limits
    from hypic_router.wire.server import Connection, listen
    from hypic_router.wire.upstream import Upstream

    upstream = Upstream(connect_s=2.0)

    async def handle(connection: Connection) -> None:
        pieces = []
        while piece := await connection.request.body.read():
            pieces.append(piece)
        body = b"".join(pieces)
        headers = (("Content-Type", "application/json"),)
        answer = await upstream.send(chosen(body), "POST", "/generate", headers=headers, body=body)
        kept = [(k, v) for k, v in answer.headers.items() if k.lower().encode() not in HOP]
        length = answer.headers.get("content-length")
        reply = await connection.begin(answer.status, kept, int(length) if length else None)
        while piece := await answer.read():
            await reply.write(piece)
        await reply.end()
        answer.close()

    await listen(handle, host="127.0.0.1", port=PROXY_PORT, limits=Limits())
    await asyncio.Event().wait()


STACKS: dict[str, tuple[str, Callable[[], None]]] = {
    "aiohttp": ("aiohttp both sides, asyncio", lambda: asyncio.run(aiohttp_server())),
    "aiohttp-uvloop": ("aiohttp both sides, uvloop", lambda: uvloop.run(aiohttp_server())),
    "uvicorn-httpx": ("uvicorn + httpx, uvloop", lambda: uvicorn_server(httpx_client())),
    "uvicorn-httpcore": ("uvicorn + httpcore, uvloop", lambda: uvicorn_server(httpcore_client())),
    "uvicorn-aiohttp": ("uvicorn + aiohttp, uvloop", lambda: uvicorn_server(aiohttp_client())),
    "granian-aiohttp": ("granian + aiohttp, uvloop", granian_server),
    "wire": ("protocols + httptools, asyncio", lambda: asyncio.run(wire_server())),
    "wire-uvloop": ("protocols + httptools, uvloop", lambda: uvloop.run(wire_server())),
}


async def measure(names: list[str], seconds: float) -> None:
    load.row("stack", "requests/s", "CPU us", "16 KB/s", "CPU us", "chunks/s", "CPU us")
    for name in names:
        with load.running([sys.executable, __file__, "--be", name], 0) as process:
            await load.until_served(PROXY_PORT, name)
            shown = []
            for body, width, each in (
                (load.SMALL, 64, 1),
                ({"text": load.prompt(16_384)}, 64, 1),
                (load.STREAM, 16, load.CHUNKS_A_STREAM),
            ):
                got = await load.pace(process, PROXY_PORT, seconds, body, width)
                shown += [f"{got.per_s * each:.0f}", f"{got.cpu_us / each:.1f}"]
            load.row(STACKS[name][0], *shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--only", default=",".join(STACKS))
    parser.add_argument("--be", choices=STACKS, help="be this proxy")
    args = parser.parse_args()
    if args.be:
        STACKS[args.be][1]()
        return
    engine = [sys.executable, load.__file__, "--port", str(ENGINE_PORT)]
    with load.running(engine, 1):
        if (os.cpu_count() or 1) > 1:
            os.sched_setaffinity(0, {1})
        uvloop.run(measure(args.only.split(","), args.seconds))


if __name__ == "__main__":
    main()
