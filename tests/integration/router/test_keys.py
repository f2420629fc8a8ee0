"""API keys and browsers: who may come in, and how the others hear that they may not."""

import pytest

from ...support.fake_engine import FakeEngine
from ...support.routers import chat, routing
from ...support.wire import ask, eventually

CHAT = "/v1/chat/completions"
ORIGIN = "https://chat.example.test"
KEY = "authorization: Bearer sk-1"


@pytest.fixture
def keys(tmp_path):
    path = tmp_path / "keys"
    path.write_text("sk-1\n")
    return path


@pytest.fixture
async def guarded(engine, keys):
    async with routing([engine.url], api_keys=str(keys), cors_origins=(ORIGIN,)) as router:
        yield router


@pytest.mark.parametrize("headers", [(), ("authorization: Bearer sk-2",), ("x-api-key: sk-1",)])
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", CHAT), ("POST", "/generate"), ("GET", "/v1/models"), ("POST", "/tokenize")],
)
async def test_without_a_valid_key_nothing_reaches_an_engine(
    guarded, engine, headers, method, path
):
    before = len(engine.generated)
    refused = await ask(guarded.url, path, chat(), method=method, headers=headers)
    assert refused.status == 401
    assert refused.json()["error"]["code"] == "invalid_api_key"
    assert refused.header("www-authenticate") == "Bearer"
    assert len(engine.generated) == before


async def test_a_valid_key_is_admitted_and_ends_at_the_router(guarded, engine):
    reply = await ask(guarded.url, CHAT, chat(), headers=(KEY, "x-trace: 1"))
    assert reply.status == 200
    assert "authorization" not in engine.generated[-1].headers
    assert engine.generated[-1].headers["x-trace"] == "1"


async def test_without_keys_at_the_router_an_engines_own_key_passes(engine):
    async with routing([engine.url]) as router:
        await ask(router.url, CHAT, chat(), headers=(KEY,))
    assert engine.generated[-1].headers["authorization"] == "Bearer sk-1"


async def test_probes_need_no_key(guarded):
    for path in ("/health", "/ready", "/accepting"):
        assert (await ask(guarded.url, path, method="GET")).status == 200


async def test_a_changed_key_counts_within_seconds(guarded, keys):
    keys.write_text("sk-2\n")

    async def admitted():
        headers = ("authorization: Bearer sk-2",)
        return (await ask(guarded.url, CHAT, chat(), headers=headers)).status == 200

    await eventually(admitted, within_s=5)
    assert (await ask(guarded.url, CHAT, chat(), headers=(KEY,))).status == 401


async def test_a_preflight_needs_no_key_and_the_answer_is_readable_in_a_browser(guarded):
    asked = ("Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization")
    headers = (f"Origin: {ORIGIN}", *asked)
    preflight = await ask(guarded.url, CHAT, method="OPTIONS", headers=headers)
    assert preflight.status == 204
    assert preflight.header("access-control-allow-origin") == ORIGIN
    assert "POST" in preflight.header("access-control-allow-methods")
    assert "authorization" in preflight.header("access-control-allow-headers")
    refused = await ask(guarded.url, CHAT, chat(), headers=(f"Origin: {ORIGIN}",))
    assert (refused.status, refused.header("access-control-allow-origin")) == (401, ORIGIN)
    stranger = await ask(guarded.url, CHAT, method="OPTIONS", headers=("Origin: https://x.test",))
    assert stranger.header("access-control-allow-origin") is None


async def test_another_model_is_unknown_and_an_adapter_of_this_one_is_not(guarded):
    for model, status in (("other", 404), ("tiny", 200), ("tiny:adapter", 200)):
        body = {**chat(), "model": model}
        reply = await ask(guarded.url, CHAT, body, headers=(KEY,))
        assert reply.status == status
        if status == 404:
            assert reply.json()["error"]["code"] == "model_not_found"


async def test_a_router_whose_keys_cannot_be_read_admits_nobody(tmp_path):
    async with FakeEngine() as engine, routing([engine.url], api_keys=f"{tmp_path}/none") as router:
        reply = await ask(router.url, CHAT, chat(), headers=("authorization: Bearer ",))
        assert reply.status == 401
