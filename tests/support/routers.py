"""A router in this process, on real sockets, in front of given engines."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypic_engine.contract.segments import DEFAULT_SEPARATOR
from hypic_router.__main__ import serve
from hypic_router.core.prompt import Names
from hypic_router.settings import Limits, Probing, Settings

from .wire import Reply, ask, eventually

NAMES = Names("tiny", DEFAULT_SEPARATOR, 16)
PROBING = Probing(every_s=0.05, timeout_s=0.5)


@dataclass
class Router:
    """Where the router listens."""

    url: str
    metrics_url: str
    stop: asyncio.Event
    task: asyncio.Task[None]

    async def fleet(self) -> dict[str, Any]:
        return (await ask(self.metrics_url, "/fleet", method="GET")).json()

    async def states(self) -> list[str]:
        return [engine["state"] for engine in (await self.fleet())["engines"]]

    async def held(self) -> list[int]:
        return [engine["segments"] for engine in (await self.fleet())["engines"]]

    async def metric(self, name: str) -> float:
        text = (await ask(self.metrics_url, "/metrics", method="GET")).body.decode()
        lines = [line for line in text.splitlines() if line.startswith(name)]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)

    async def ready(self, count: int) -> None:
        async def enough() -> bool:
            return (await self.states()).count("ready") == count

        await eventually(enough, what=f"{count} engines ready")

    async def chat(self, text: str = "Say hello.", **more: Any) -> Reply:
        headers = more.pop("headers", ("x-hypic-explain: 1",))
        return await ask(self.url, "/v1/chat/completions", chat(text, **more), headers=headers)


def chat(text: str = "Say hello.", **more: Any) -> dict[str, Any]:
    """A chat body."""
    return {"model": "tiny", "messages": [{"role": "user", "content": text}], **more}


@contextlib.asynccontextmanager
async def routing(
    urls: Sequence[str], *, ready: int | None = None, limits: Limits | None = None, **more: Any
) -> AsyncIterator[Router]:
    """A router over these engines, once ``ready`` of them are (all, where not said)."""
    chosen = Settings(
        names=NAMES,
        host="127.0.0.1",
        port=0,
        metrics_port=0,
        engines=tuple(urls),
        probing=PROBING,
        limits=limits or Limits(),
        unlisted_s=0.0,
        shutdown_s=5.0,
    )
    stop = asyncio.Event()
    started: asyncio.Future[tuple[int, int]] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(replace(chosen, **more), stop, started))
    port, metrics_port = await asyncio.wait_for(started, 10)
    router = Router(f"http://127.0.0.1:{port}", f"http://127.0.0.1:{metrics_port}", stop, task)
    try:
        await router.ready(len(urls) if ready is None else ready)
        yield router
    finally:
        stop.set()
        await task
