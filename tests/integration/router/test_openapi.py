"""The router's description of itself, and a fuzzer that takes it at its word."""

import asyncio
import json

from ...support import clients
from ...support.fake_engine import FakeEngine
from ...support.routers import routing
from ...support.wire import ask


async def test_every_route_of_the_description_is_there_and_takes_its_method(router):
    described = (await ask(router.url, "/openapi.json", method="GET")).json()["paths"]
    for path, methods in described.items():
        reply = await ask(router.url, path.replace("{model}", "tiny"), method="OPTIONS")
        allowed = reply.header("allow").lower().split(", ")
        assert set(allowed) - {"head", "options"} == set(methods), path


async def test_embeddings_pass_to_an_engine(router, engine):
    reply = await ask(router.url, "/v1/embeddings", {"model": "tiny", "input": "Say hello."})
    assert reply.json()["data"][0]["embedding"] == [0.5, 0.25]
    asked = next(request for request in engine.seen if request.path == "/v1/embeddings")
    assert asked.json() == {"model": "tiny", "input": "Say hello."}


async def test_a_fuzzer_finds_no_error_of_our_own(tmp_path):
    async with FakeEngine() as engine, routing([engine.url]) as router:
        command = [clients.python(), "-m", "schemathesis.cli", "run"]
        command += [f"{router.url}/openapi.json", "--url", router.url]
        command += ["--checks", "not_a_server_error"]
        command += ["--phases", "coverage,fuzzing", "--max-examples", "20"]
        command += ["--seed", "1", "--no-color"]
        said = await asyncio.to_thread(clients.run, command, at=tmp_path)
        assert await router.metric("hypic_router_requests_total") > 50
        print(said[-2500:])
        errors = await router.metric('hypic_router_errors_total{reason="internal_error"}')
        assert errors == 0, json.dumps(said[-3000:])
