"""A server of a role is killed while it works: another pair answers, or an error comes soon."""

import concurrent.futures
import json
import os
import signal
from dataclasses import dataclass

import pytest

from ...support.engine_server import Engine, together
from ...support.front import Front, front
from ...support.pair import decoding, prefilling
from ...support.waiting import eventually
from .prompts import documents
from .test_draining import drain

N_TOKENS = 8
SECONDS = 20


@dataclass(frozen=True)
class Servers:
    """Two prefill servers, one of decode, and the router before them."""

    first: Engine
    second: Engine
    decode: Engine
    router: Front


@pytest.fixture(scope="module")
def servers(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mortal")
    first, one = prefilling(tiny, folder / "first.log")
    second, other = prefilling(tiny, folder / "second.log")
    decode = decoding(tiny, folder / "decode.log")
    flags = ("--prefill", f"{first.url}#{one},{second.url}#{other}", "--decode", decode.url)
    flags += ("--connect-timeout-s", "20")  # three servers that start on a small machine are slow
    with (
        together(first, second, decode),
        front(folder / "router.log", *flags, ready=3) as router,
    ):
        yield Servers(first, second, decode, router)


def kill(server):
    os.killpg(server.process.pid, signal.SIGKILL)
    server.process.wait(30)


def body(prompt, n_tokens=N_TOKENS):
    return {"model": "any", "prompt": prompt, "max_tokens": n_tokens, "temperature": 0}


def busy(server):
    counts = drain(server)[1]
    return counts["running"] + counts["queued"] + counts["transfers"] > 0


def test_a_prefill_server_that_is_killed_costs_no_request(servers):
    prompts = documents(31, *[1_500] * 6)
    with concurrent.futures.ThreadPoolExecutor(6) as clients:
        asked = [
            clients.submit(servers.router.timed, "/v1/completions", body(one)) for one in prompts
        ]
        eventually(lambda: busy(servers.first))
        kill(servers.first)
        answers = [one.result() for one in asked]
    assert [status for status, _, _ in answers] == [200] * 6
    assert max(seconds for _, _, seconds in answers) < SECONDS
    for prompt, (_, answer, _) in zip(prompts, answers, strict=True):
        again = servers.router.post("/v1/completions", body(prompt))[1]
        assert again["choices"][0]["text"] == answer["choices"][0]["text"]
    assert servers.second.alive


def test_a_decode_server_that_is_killed_ends_its_stream_with_one_error(servers):
    long = body(documents(32, 60)[0], 4_000) | {"ignore_eos": True}
    stream = servers.router.events("/v1/completions", long, SECONDS)
    events = [next(stream)]
    kill(servers.decode)
    *tokens, error = [json.loads(event) for event in (*events, *stream)]
    assert tokens[0]["choices"]
    assert error["error"]["code"] == "engine_broken"

    def refused():
        status, answer, took_s = servers.router.timed("/v1/completions", body("Who is there?"))
        assert status in (502, 503)
        assert took_s < SECONDS
        return status == 503 and "no decode engine is ready" in answer["error"]["message"]

    eventually(refused)
