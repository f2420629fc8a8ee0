"""Reads prompts: short bodies at once, long ones in another process, so that nobody waits for them.

What is read is decided in `core.prompt`. Parsers of JSON hold the interpreter's lock, so a thread
would not do.
"""

import asyncio
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from .core.prompt import Endpoint, Names, Prompt, prompt

# About what is read in ten milliseconds.
LONG_BYTES = 1 << 20


class Parser:
    """Reads prompts; its process is started by the first long body."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    async def prompt(self, endpoint: Endpoint, body: bytes, names: Names) -> Prompt:
        """What the body asks for; raises what `core.prompt.prompt` does."""
        if len(body) < LONG_BYTES:
            return prompt(endpoint, body, names)
        if self._pool is None:
            spawning = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, mp_context=spawning)
        loop, pool = asyncio.get_running_loop(), self._pool
        try:
            return await loop.run_in_executor(pool, prompt, endpoint, body, names)
        except BrokenProcessPool:
            if self._pool is pool:
                self.close()
            return prompt(endpoint, body, names)

    def close(self) -> None:
        """Ends the process; the next long body starts another."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
