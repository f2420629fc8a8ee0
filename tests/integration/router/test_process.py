"""The router as a process: its command, its log, and how it leaves."""

import asyncio
import json
import signal
import time

from ...support.fake_engine import END, SSE_HEAD, FakeEngine, event, token
from ...support.router_process import started
from ...support.routers import chat
from ...support.wire import Call, ask, eventually

SECRET = "the prompt that nobody may log"


async def test_sigterm_lets_a_running_stream_end_and_then_exits_with_0():
    go = asyncio.Event()

    async def waits(turn):
        await turn.send(SSE_HEAD, event(token("a")))
        await go.wait()
        await turn.send(event(token("b", "stop")), event(b"[DONE]"), END)

    async with (
        FakeEngine(behave=waits) as engine,
        started("--engines", engine.url, "--unlisted-s", "0.3") as router,
    ):
        async with Call(router.url, "/v1/chat/completions", chat(stream=True)) as call:
            await call.head()
            pieces = call.pieces()
            await anext(pieces)
            router.process.send_signal(signal.SIGTERM)
            await router.said("Leaving")
            for path in ("/accepting", "/ready"):
                refused = await ask(router.url, path, method="GET")
                assert refused.status == 503
                assert "shutting down" in refused.json()["error"]["message"]
            late = await ask(router.url, "/v1/models", method="GET")
            assert late.status == 200
            assert late.header("connection") == "close"
            go.set()
            rest = b"".join([piece async for piece in pieces])
            assert rest.endswith(b"data: [DONE]\n\n")
            assert call.reply.clean
        assert await asyncio.wait_for(router.process.wait(), 10) == 0


async def test_a_stream_that_never_ends_gets_an_error_event_at_the_limit():
    async def never(turn):
        await turn.send(SSE_HEAD, event(token("a")))
        await turn.left()
        return True

    async with FakeEngine(behave=never) as engine:
        flags = ("--engines", engine.url, "--unlisted-s", "0", "--shutdown-s", "0.5")
        async with started(*flags) as router:
            async with Call(router.url, "/v1/chat/completions", chat(stream=True)) as call:
                await call.head()
                pieces = call.pieces()
                await anext(pieces)
                began_s = time.monotonic()
                router.process.send_signal(signal.SIGTERM)
                rest = b"".join([piece async for piece in pieces])
                assert b'"code": "router_closing"' in rest
                assert call.reply.clean
                assert await asyncio.wait_for(router.process.wait(), 10) == 0
                assert 0.4 < time.monotonic() - began_s < 5
            await eventually(lambda: engine.running == 0)


async def test_the_log_is_json_lines_with_the_choice_and_without_the_prompt():
    async with (
        FakeEngine() as engine,
        started("--engines", engine.url, "--log-level", "debug") as router,
    ):
        body = {"text": SECRET}
        assert (
            await ask(router.url, "/generate", body, headers=("x-request-id: r7",))
        ).status == 200
        assert (await ask(router.url, "/generate", raw=SECRET.encode())).status == 400
        line = await router.said("Chose an engine")
        assert (line["request_id"], line["engine"]) == ("r7", engine.url)
        assert line["choice"] == "prefix"
        await router.said("Refused a request")
        assert SECRET not in json.dumps(router.lines)
