"""What real clients send gets the same answer through the router as from the engine itself."""

import json

import pytest

from ...support.front import front

CHAT = "/v1/chat/completions"
HELLO = {"role": "user", "content": "Say hello."}
CALL = {"name": "lookup_tide", "arguments": '{"port": "Orsund"}'}
CALLED = {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": CALL}]}
TOLD = {"role": "tool", "tool_call_id": "1", "content": "High water 06:12"}
NULLS = dict.fromkeys(("stop", "n", "tools", "stream", "stream_options", "logit_bias", "user"))
UNKNOWN = {"store": False, "metadata": {"run": "7"}, "prediction": None, "vendor": {"a": [1]}}
TWICE = (
    b'{"messages": [{"role": "user", "content": "Hi"}], "top_k": 2, "top_k": 1, "max_tokens": 4}'
)
ODD = rb'{"top_k": 1, "messages": [{"role": "user", "content": "\ud83d\ude00 \u0000 \ud83d"}]}'


def body(*messages, **fields):
    return {"model": "any", "messages": list(messages or (HELLO,)), "max_tokens": 4, **fields}


BODIES = {
    "plain": body(),
    "null after a call": body(HELLO, {**CALLED, "content": None}, TOLD),
    "nothing after a call": body(HELLO, CALLED, TOLD),
    "null from a user": body({"role": "user", "content": None}),
    "no messages": {**body(), "messages": []},
    "messages missing": {"model": "any", "max_tokens": 4},
    "messages of another type": {**body(), "messages": "Hi"},
    "assistant only": body({"role": "assistant", "content": "Who are you?"}),
    "empty text": body({"role": "user", "content": ""}),
    "parts": body({"role": "user", "content": [{"type": "text", "text": "Hi"}]}),
    "unknown part": body({"role": "user", "content": [{"type": "smell", "smell": "sea"}]}),
    "list of stops": body(stop=["\n\n", "###"]),
    "one stop": body(stop="\n"),
    "both limits": body(max_completion_tokens=3),
    "nulls": body(**NULLS),
    "unknown fields": body(**UNKNOWN),
    "name": body({**HELLO, "name": "caller-7"}),
    "temperature as text": body(temperature="0"),
    "negative limit": body(max_tokens=-1),
    "prompt past the context": body({"role": "user", "content": "word " * 60_000}),
    "one key twice": TWICE,
    "NUL and a lone surrogate": ODD,
}


@pytest.fixture(scope="module")
def router(engine, tmp_path_factory):
    with front(tmp_path_factory.mktemp("router") / "log", "--engines", engine.url) as started:
        yield started


def seen(server, sent):
    """Status, keys and text of the answer."""
    raw = (
        sent
        if isinstance(sent, bytes)
        else json.dumps(sent | {"temperature": sent.get("temperature", 0)}).encode()
    )
    status, answer = server.post(CHAT, raw)
    choices = answer.get("choices") or [{}]
    return status, sorted(answer), choices[0].get("message"), answer.get("message")


@pytest.mark.parametrize("name", BODIES)
def test_status_keys_and_text_are_those_of_the_engine(router, engine, name):
    through, direct = seen(router, BODIES[name]), seen(engine, BODIES[name])
    assert through == direct
    assert through[0] != 500
