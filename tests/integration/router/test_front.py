"""What clients meet: routes, errors, headers, and OpenAI's own SDK."""

import asyncio
import gzip

import openai
import pytest

from hypic_router.settings import KubeApi

from ...support.fake_engine import FakeEngine, hangs, plain, says
from ...support.routers import chat, routing
from ...support.wire import Call, ask, eventually


async def test_a_body_reaches_the_engine_byte_for_byte(engine, router):
    raw = b'{ "messages":[{"role":"user","content":"caf\\u00e9 \xf0\x9f\x98\x80"}],'
    raw += b'\n "odd": [1.0e3, null],"odd":2 }'
    reply = await ask(router.url, "/v1/chat/completions", raw=raw)
    assert reply.status == 200
    assert engine.generated[0].body == raw


async def test_an_answer_comes_back_with_status_headers_and_bytes_of_the_engine(engine, router):
    engine.behave = says(plain(418, {"object": "error", "message": "teapot"}, b"X-Engine: yes"))
    reply = await router.chat()
    assert reply.status == 418
    assert reply.header("x-engine") == "yes"
    assert reply.json() == {"object": "error", "message": "teapot"}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/generate"])
async def test_every_generating_route_is_passed_on(engine, router, path):
    body = {**chat(), "prompt": "Say hello.", "text": "Say hello."}
    reply = await ask(router.url, f"{path}?x=%20y", body)
    assert reply.status == 200
    assert engine.generated[0].target == f"{path}?x=%20y"


async def test_models_and_tokenize_are_the_engines(router):
    models = await ask(router.url, "/v1/models", method="GET")
    assert models.json()["data"][0]["id"] == "tiny"
    head = await ask(router.url, "/v1/models", method="HEAD")
    assert (head.status, head.body) == (200, b"")
    tokens = await ask(router.url, "/tokenize", {"prompt": "abc"})
    assert tokens.json()["count"] == 3


async def test_without_an_engine_the_model_is_still_listed_and_requests_say_what_is_missing():
    async with (
        FakeEngine(ready=(503, {"reason": "weights are loading"})) as engine,
        routing([engine.url], ready=0) as router,
    ):
        await eventually(lambda: engine.seen)
        models = await ask(router.url, "/v1/models", method="GET")
        assert [model["id"] for model in models.json()["data"]] == ["tiny"]
        reply = await eventually_refused(router)
        assert reply.header("retry-after") == "2"
        assert engine.url in reply.json()["error"]["message"]
        assert (await ask(router.url, "/health", method="GET")).status == 200
        assert (await ask(router.url, "/ready", method="GET")).status == 503
        assert (await ask(router.url, "/accepting", method="GET")).status == 200
        engine.ready = (200, {})
        await router.ready(1)
        assert (await ask(router.url, "/ready", method="GET")).status == 200
        assert (await router.chat()).status == 200


async def test_a_router_accepts_requests_once_it_knows_which_engines_there_are_be_it_none():
    listed = asyncio.Event()

    async def behave(request, reader, writer, **_):
        if "watch=1" in request.target:
            await reader.read()
            return True
        await listed.wait()
        writer.write(plain(200, {"items": [], "metadata": {"resourceVersion": "1"}}))
        await writer.drain()
        return True

    async with FakeEngine() as api:
        api._answer = behave
        kube = KubeApi(api.url, "", "")
        async with routing([], ready=0, kube_api=kube, cluster="c", namespace="n") as router:
            await eventually(lambda: api.seen)
            for path in ("/accepting", "/ready"):
                early = await ask(router.url, path, method="GET")
                assert early.status == 503
                assert early.json()["error"]["code"] == "not_accepting"
            listed.set()

            async def accepts():
                return (await ask(router.url, "/accepting", method="GET")).status == 200

            await eventually(accepts)
            assert (await ask(router.url, "/ready", method="GET")).status == 503
            assert (await router.chat()).json()["error"]["code"] == "no_engine"


async def eventually_refused(router):
    async def refused():
        reply = await router.chat()
        assert reply.status == 503
        return reply if b"weights are loading" in reply.body else None

    return await eventually(refused)


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/v1/chat/completions", 405, "OPTIONS, POST"),
        ("DELETE", "/v1/models", 405, "GET, HEAD, OPTIONS"),
        ("POST", "/v1/nothing", 404, None),
        ("POST", "/v1//chat/completions", 404, None),
        ("POST", "/v1/chat/completions/", 404, None),
        ("GET", "/v1/models/../../flush_cache", 404, None),
        ("GET", "/v1/models/%2e%2e/x", 404, None),
        ("GET", "/pic/segments", 404, None),
        ("GET", "/metrics", 404, None),
    ],
)
async def test_other_methods_and_paths_get_json(router, engine, method, path, status, allow):
    before = len(engine.generated)
    reply = await ask(router.url, path, {} if method == "POST" else None, method=method)
    assert (reply.status, reply.header("allow")) == (status, allow)
    assert reply.json()["error"]["message"]
    assert len(engine.generated) == before


async def test_a_preflight_needs_no_key_and_strangers_get_nothing(router):
    asked = "authorization,content-type,x-stainless-os"
    lines = (f"Access-Control-Request-Headers: {asked}", "Access-Control-Request-Method: POST")
    path = "/v1/chat/completions"
    friend = await ask(
        router.url, path, method="OPTIONS", headers=("Origin: https://chat.example.test", *lines)
    )
    assert friend.status == 204
    assert friend.header("access-control-allow-origin") == "https://chat.example.test"
    assert friend.header("access-control-allow-headers") == asked
    assert "POST" in friend.header("access-control-allow-methods")
    stranger = await ask(
        router.url, path, method="OPTIONS", headers=("Origin: https://other.test", *lines)
    )
    assert stranger.header("access-control-allow-origin") is None


async def test_the_answer_carries_the_origin_once_whatever_the_engine_says(router, engine):
    engine.behave = says(plain(200, {}, b"Access-Control-Allow-Origin: *"))
    reply = await router.chat(headers=("Origin: https://chat.example.test",))
    names = [
        value for name, value in reply.headers if name.lower() == "access-control-allow-origin"
    ]
    assert names == ["https://chat.example.test"]


async def test_request_ids_and_trace_context_go_through(router, engine):
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    reply = await router.chat(headers=("X-Request-Id: mine-7", f"traceparent: {trace}"))
    assert reply.header("x-request-id") == "mine-7"
    assert engine.generated[0].headers["x-request-id"] == "mine-7"
    assert engine.generated[0].headers["traceparent"] == trace
    made = await router.chat(headers=("X-Request-Id: not allowed",))
    assert made.header("x-request-id") == engine.generated[1].headers["x-request-id"]
    assert made.header("x-request-id") not in ("", "not allowed")


async def test_headers_of_one_connection_end_there(router, engine):
    engine.behave = says(
        plain(
            200, {}, b"Connection: keep-alive, X-Private", b"X-Private: 1", b"Keep-Alive: timeout=5"
        )
    )
    reply = await router.chat(
        headers=("Connection: keep-alive, X-Mine", "X-Mine: 1", "TE: trailers", "X-Kept: 1")
    )
    names = [name.lower() for name, _ in reply.headers]
    assert names.count("content-length") + names.count("transfer-encoding") == 1
    assert not {"x-private", "keep-alive"} & set(names)
    sent = engine.generated[0].headers
    assert "x-kept" in sent
    assert not {"x-mine", "te"} & set(sent)


async def test_a_compressed_answer_stays_as_it_is(router, engine):
    packed = gzip.compress(b'{"hello": "world"}' * 100)
    engine.behave = says(plain(200, packed, b"Content-Encoding: gzip"))
    reply = await router.chat(headers=("Accept-Encoding: gzip, br",))
    assert reply.header("content-encoding") == "gzip"
    assert reply.body == packed
    assert engine.generated[0].headers["accept-encoding"] == "gzip, br"
    await router.chat(headers=())
    assert "accept-encoding" not in engine.generated[1].headers


async def test_an_error_page_of_the_engine_becomes_json(router, engine):
    engine.behave = says(plain(502, b"<html>Bad Gateway</html>", kind=b"text/html"))
    reply = await router.chat()
    assert reply.status == 502
    assert "Bad Gateway" in reply.json()["error"]["message"]


async def test_the_choice_is_shown_when_asked_for(router, engine):
    shown = await router.chat()
    assert shown.header("x-hypic-engine") == engine.url
    assert shown.header("x-hypic-choice").startswith(
        "prefix: by the prompt's beginning; 0 requests ahead"
    )
    silent = await router.chat(headers=())
    assert silent.header("x-hypic-choice") is None


async def test_a_large_answer_arrives_whole(router, engine):
    text = "word " * 600_000
    engine.behave = says(plain(200, {"text": text}))
    reply = await ask(router.url, "/generate", {"text": "x"})
    assert reply.json()["text"] == text


async def test_the_openai_sdk_works(router):
    async with openai.AsyncOpenAI(
        base_url=f"{router.url}/v1", api_key="none", max_retries=0
    ) as client:
        messages = [{"role": "user", "content": "Say hello."}]
        plain_answer = await client.chat.completions.create(model="tiny", messages=messages)
        assert plain_answer.choices[0].message.content == "abc"
        stream = await client.chat.completions.create(
            model="tiny", messages=messages, stream=True, stream_options={"include_usage": True}
        )
        parts = [part async for part in stream]
        assert "".join(p.choices[0].delta.content for p in parts if p.choices) == "abc"
        assert parts[-1].usage.prompt_tokens_details.cached_tokens == 0
        assert [model.id async for model in client.models.list()] == ["tiny"]
        wrong = {"custom_params": {"pic": {"enabled": 1}}}
        with pytest.raises(openai.BadRequestError, match="true or false") as caught:
            await client.chat.completions.create(model="tiny", messages=messages, extra_body=wrong)
        assert caught.value.param == "custom_params.pic.enabled"


async def test_metrics_have_the_names_that_others_read(router):
    await router.chat()
    text = (await ask(router.metrics_url, "/metrics", method="GET")).body.decode()
    for name in (
        'hypic_router_requests_total{code="200"} 1.0',
        "hypic_router_ttft_seconds_count 1.0",
        "hypic_router_inter_token_seconds_count",
        "hypic_router_queue_seconds_count 1.0",
        'hypic_router_choice_total{reason="prefix"} 1.0',
        "hypic_router_predicted_tokens_total",
        "hypic_router_actual_tokens_total",
        "hypic_router_running_requests 0.0",
        'hypic_router_engines{state="ready"} 1.0',
    ):
        assert name in text


async def test_a_request_under_way_is_counted_until_it_ends(engine, router):
    async def running():
        return await router.metric("hypic_router_running_requests")

    engine.behave = hangs
    async with Call(router.url, "/v1/chat/completions", chat()):
        await eventually(lambda: engine.running == 1)
        assert await running() == 1
    await eventually(lambda: engine.running == 0)

    async def none():
        return await running() == 0

    await eventually(none)
