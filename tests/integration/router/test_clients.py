"""The clients that people use, unchanged, against the router: SDKs, a framework, curl."""

import asyncio
import json

import openai
import pytest

from hypic_router.settings import Admitting

from ...support import clients
from ...support.fake_engine import SSE_HEAD, FakeEngine, chunk, event, token
from ...support.routers import routing
from ...support.wire import eventually

USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 3,
    "total_tokens": 12,
    "prompt_tokens_details": {"cached_tokens": 0},
}


@pytest.fixture
async def keyed(engine, tmp_path):
    (tmp_path / "keys").write_text("sk-1")
    async with routing([engine.url], api_keys=str(tmp_path / "keys")) as router:
        yield router


async def test_openais_python_sdk_reads_answers_streams_and_errors(keyed):
    asked = {"model": "tiny", "messages": [{"role": "user", "content": "Say hello."}]}
    async with openai.AsyncOpenAI(
        base_url=f"{keyed.url}/v1", api_key="sk-1", max_retries=0
    ) as client:
        assert [model.id async for model in await client.models.list()] == ["tiny"]
        plain = await client.chat.completions.create(**asked)
        assert plain.choices[0].message.content == "abc"
        stream = await client.chat.completions.create(**asked, stream=True)
        assert [one.choices[0].delta.content async for one in stream] == ["a", "b", "c"]
        done = await client.completions.create(model="tiny", prompt="Say hello.")
        assert done.choices[0].text == "abc"
        with pytest.raises(openai.NotFoundError) as refused:
            await client.chat.completions.create(**{**asked, "model": "other"})
        assert (refused.value.code, refused.value.param) == ("model_not_found", "model")
    async with openai.AsyncOpenAI(
        base_url=f"{keyed.url}/v1", api_key="no", max_retries=0
    ) as client:
        with pytest.raises(openai.AuthenticationError):
            await client.chat.completions.create(**asked)


async def test_openais_python_sdk_reads_a_stream_that_was_held(monkeypatch):
    monkeypatch.setattr("hypic_router.guard.admission.HEARTBEAT_S", 0.1)
    async with FakeEngine(ready=(503, {})) as engine:
        admitting = Admitting(hold_s=20.0)
        async with routing([engine.url], ready=0, admitting=admitting) as router:
            asked = {"model": "tiny", "messages": [{"role": "user", "content": "Say hello."}]}
            async with openai.AsyncOpenAI(base_url=f"{router.url}/v1", api_key="-") as client:
                stream = await client.chat.completions.create(**asked, stream=True)
                engine.ready = (200, {})
                assert [one.choices[0].delta.content async for one in stream] == ["a", "b", "c"]


async def test_openais_node_sdk_reads_answers_streams_and_errors(keyed):
    command = ["node", clients.script("sdk.mjs"), keyed.url, "sk-1"]
    got = json.loads(await asyncio.to_thread(clients.run, command))
    assert got == {
        "models": ["tiny"],
        "plain": "abc",
        "text": "abc",
        "usage": USAGE,
        "refused": {"status": 404, "code": "model_not_found", "param": "model"},
        "stranger": "AuthenticationError",
    }


async def test_langchains_model_reads_answers_and_streams(keyed):
    command = [clients.python(), clients.script("chain.py"), keyed.url, "sk-1"]
    got = json.loads(await asyncio.to_thread(clients.run, command))
    assert (got["plain"], got["text"]) == ("abc", "abc")
    assert (got["usage"]["input_tokens"], got["usage"]["output_tokens"]) == (9, 3)


async def test_curl_shows_each_token_as_it_comes(engine):
    go = asyncio.Event()

    async def in_two_halves(turn):
        await turn.send(SSE_HEAD, event(token("first")))
        await go.wait()
        await turn.send(event(token("second", "stop")), chunk(b"data: [DONE]\n\n"), b"0\r\n\r\n")

    engine.behave = in_two_halves
    body = json.dumps({"model": "tiny", "stream": True, "messages": [{"role": "user"}]})
    async with routing([engine.url]) as router:
        curl = await asyncio.create_subprocess_exec(
            *("curl", "-sN", "--max-time", "20", f"{router.url}/v1/chat/completions", "-d", body),
            stdout=asyncio.subprocess.PIPE,
        )
        assert b"first" in await curl.stdout.readline()
        go.set()
        rest, _ = await curl.communicate()
        assert rest.index(b"second") < rest.index(b"data: [DONE]")
        assert curl.returncode == 0
        await eventually(lambda: engine.running == 0)
