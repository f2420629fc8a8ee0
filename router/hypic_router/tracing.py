"""Spans of requests for an OpenTelemetry collector, where one is named; nothing otherwise.

A span tells how a request went and why its engine was chosen. It never holds text of a prompt.
"""

import contextlib
from collections.abc import Iterator, Sequence

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from .core.choose import Choice

CONTEXT_HEADERS = ("traceparent", "tracestate")
LEAVE_MS = 2_000
SERVER_ERROR = 500

Pairs = Sequence[tuple[str, str]]


class Tracing:
    """Makes spans, or none."""

    def __init__(self, collector: str) -> None:
        """Begins to send in the background.

        Args:
            collector: its OTLP address, as http://host:4318; empty for none.
        """
        self._provider: TracerProvider | None = None
        self._propagator = TraceContextTextMapPropagator()
        if collector:
            self._provider = TracerProvider(
                resource=Resource.create({"service.name": "hypic-router"})
            )
            exporter = OTLPSpanExporter(endpoint=f"{collector}/v1/traces")
            self._provider.add_span_processor(BatchSpanProcessor(exporter))

    @contextlib.contextmanager
    def request(self, method: str, route: str, headers: Pairs) -> Iterator[None]:
        """A span around one request, a child of the client's where its headers name one."""
        if self._provider is None:
            yield
            return
        carrier = {name.lower(): value for name, value in headers}
        with self._provider.get_tracer(__name__).start_as_current_span(
            f"{method} {route}",
            context=self._propagator.extract(carrier),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": method, "http.route": route},
        ):
            yield

    def for_engine(self, headers: Pairs) -> Pairs:
        """The headers with the current span in place of the client's."""
        if self._provider is None:
            return headers
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        kept = [pair for pair in headers if pair[0].lower() not in CONTEXT_HEADERS]
        return [*kept, *carrier.items()]

    def close(self) -> None:
        """Sends what is left, for a moment at most."""
        if self._provider is not None:
            self._provider.force_flush(LEAVE_MS)
            self._provider.shutdown()


def answered(status: int) -> None:
    """Writes the status that was sent into the current span, if there is one."""
    span = trace.get_current_span()
    span.set_attribute("http.response.status_code", status)
    if status >= SERVER_ERROR:
        span.set_status(StatusCode.ERROR)


def chosen(choice: Choice) -> None:
    """Writes a choice into the current span, if there is one."""
    span = trace.get_current_span()
    if span.is_recording():
        said = {"hypic.engine": choice.worker.at.name, "hypic.choice": choice.label}
        span.add_event("hypic.choice", said | {"hypic.choice.reason": choice.reason})
