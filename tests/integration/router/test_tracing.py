"""Trace context on its way through, and spans at a collector."""

import asyncio

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ...support.fake_engine import plain
from ...support.routers import chat, routing
from ...support.wire import ask, read_request

CHAT = "/v1/chat/completions"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HEADER = f"traceparent: 00-{TRACE}-{PARENT}-01"
SECRET = "Only the harbour master knows this."


class Collector:
    """Takes what is exported and keeps it."""

    def __init__(self):
        self.bodies = []

    async def serve(self, reader, writer):
        try:
            while True:
                self.bodies.append((await read_request(reader)).body)
                writer.write(plain(200, b"", kind=b"application/x-protobuf"))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def spans(self):
        exported = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        groups = (group for one in exported for group in one.resource_spans)
        return [span for group in groups for scope in group.scope_spans for span in scope.spans]


@pytest.fixture
async def collector():
    collector = Collector()
    server = await asyncio.start_server(collector.serve, "127.0.0.1", 0)
    collector.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield collector
    server.close()


async def test_without_a_collector_the_clients_trace_passes_untouched(router, engine):
    await ask(router.url, CHAT, chat(), headers=(HEADER, "tracestate: a=b"))
    assert engine.generated[-1].headers["traceparent"] == HEADER.partition(": ")[2]
    assert engine.generated[-1].headers["tracestate"] == "a=b"


async def test_a_span_stands_between_client_and_engine_and_says_why_it_went_there(
    engine, collector
):
    async with routing([engine.url], otlp_collector=collector.url) as router:
        await ask(router.url, CHAT, chat(SECRET), headers=(HEADER,))
        await ask(router.url, f"/{SECRET[:4]}", method="GET")
    span = next(span for span in collector.spans() if span.name == f"POST {CHAT}")
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    to_engine = engine.generated[-1].headers["traceparent"]
    assert to_engine == f"00-{TRACE}-{span.span_id.hex()}-01"
    said = {one.key: one.value for one in span.attributes}
    assert said["http.response.status_code"].int_value == 200
    (event,) = span.events
    why = {one.key: one.value.string_value for one in event.attributes}
    assert event.name == "hypic.choice"
    assert (why["hypic.engine"], why["hypic.choice"]) == (engine.url, "prefix")
    assert "requests ahead" in why["hypic.choice.reason"]
    assert "GET other" in {span.name for span in collector.spans()}
    assert all(b"harbour" not in body and b"Only" not in body for body in collector.bodies)


async def test_a_collector_that_is_away_costs_requests_nothing(engine):
    async with routing([engine.url], otlp_collector="http://127.0.0.1:9") as router:
        assert (await ask(router.url, CHAT, chat())).status == 200
