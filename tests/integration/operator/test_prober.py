"""The prober against a real HTTP server."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from hypic_operator.core.api import HypicCluster
from hypic_operator.core.serving import Answer
from hypic_operator.metrics import Metrics
from hypic_operator.pods.prober import Answers, HttpProber
from hypic_operator.wakeups import Key

from ...support import resources
from ...support.apiserver import free_ports


@dataclass
class Door:
    """A front door that answers as the test says."""

    url: str
    status: int = 200
    body: str = '{"usage": {"completion_tokens": 1}}'
    hangs: bool = False
    patience_s: float = 10.0
    asked: list[Any] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(await request.json())
        self.keys.append(request.headers.get("Authorization"))
        if self.hangs:
            await asyncio.Event().wait()
        return web.Response(status=self.status, text=self.body)

    async def ask(self, *, key: str = "") -> Answer:
        async with aiohttp.ClientSession() as session:
            prober = HttpProber(session, timeout_s=self.patience_s)
            return await prober.ask_at(f"{self.url}/v1/completions", "tiny", key=key)


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    (port,) = free_ports(1)
    found = Door(f"http://127.0.0.1:{port}")
    app = web.Application()
    app.router.add_post("/v1/completions", found.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    yield found
    await runner.cleanup()


async def test_a_token_is_one_that_the_engine_counted(door: Door) -> None:
    answer = await door.ask()
    assert answer.token
    assert door.asked[0]["max_tokens"] == 1
    assert door.asked[0]["model"] == "tiny"


async def test_a_key_is_sent_where_the_door_asks_for_one(door: Door) -> None:
    await door.ask()
    await door.ask(key="k")
    assert door.keys == [None, "Bearer k"]


@pytest.mark.parametrize("body", ["{}", "<html>", '{"usage": {"completion_tokens": 0}}', "[]"])
async def test_an_answer_without_a_token_is_none(door: Door, body: str) -> None:
    door.body = body
    answer = await door.ask()
    assert (answer.token, answer.reason) == (False, "NoToken")


async def test_a_refusal_is_told_with_its_words(door: Door) -> None:
    door.status, door.body = 503, '{"error": {"message": "no engine"}}'
    answer = await door.ask()
    assert (answer.token, answer.reason) == (False, "RequestFailed")
    assert "503" in answer.message
    assert "no engine" in answer.message


async def test_silence_ends(door: Door) -> None:
    door.hangs, door.patience_s = True, 0.2
    answer = await door.ask()
    assert (answer.token, answer.reason) == (False, "NoAnswer")
    assert "no answer in 0.2 s; the logs of the engines" in answer.message


async def test_a_closed_door_is_told() -> None:
    (port,) = free_ports(1)
    answer = await Door(f"http://127.0.0.1:{port}").ask()
    assert (answer.token, answer.reason) == (False, "NotReachable")


class Broken:
    """A prober that fails as none should."""

    async def ask(self, _cluster: HypicCluster) -> Answer:
        raise ValueError("a bug")


async def test_a_prober_that_breaks_is_a_failed_request_and_wakes() -> None:
    woken = asyncio.Event()
    metrics = Metrics(CollectorRegistry())
    answers = Answers(Broken(), lambda _: woken.set(), metrics, period_s=60.0)
    key, cluster = Key("default", "demo"), resources.cluster()
    assert answers.ask_when_due(key, cluster, frozenset({"pod"})) == 60.0
    async with asyncio.timeout(5):
        await woken.wait()
    answer = answers.record(key).answer
    assert answer is not None
    assert not answer.token
    assert "a bug" in answer.message
    answers.forget(key)
    assert answers.record(key).answer is None
