"""The router as a process of its own."""

import asyncio
import contextlib
import json
import sys

from .wire import ask, eventually


class Process:
    """One ``hypic-router``, with its log lines as they come."""

    def __init__(self, process):
        self.process = process
        self.lines = []
        self.reading = asyncio.create_task(self._read())

    async def _read(self):
        async for line in self.process.stderr:
            self.lines.append(json.loads(line))

    async def said(self, message):
        def line():
            return next((one for one in self.lines if one["message"] == message), None)

        return await eventually(line, what=f"log line {message!r}")


@contextlib.asynccontextmanager
async def started(*flags, port=0):
    """A router's process, once it is ready."""
    command = (sys.executable, "-m", "hypic_router", "--host", "127.0.0.1", "--port", f"{port}")
    process = await asyncio.create_subprocess_exec(
        *command, "--metrics-port", "0", "--model", "tiny", *flags, stderr=asyncio.subprocess.PIPE
    )
    router = Process(process)
    try:
        serving = await router.said("Serving")
        router.url = f"http://127.0.0.1:{serving['port']}"
        router.metrics_url = f"http://127.0.0.1:{serving['metrics_port']}"

        async def ready():
            return (await ask(router.url, "/ready", method="GET")).status == 200

        await eventually(ready)
        yield router
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await router.reading
