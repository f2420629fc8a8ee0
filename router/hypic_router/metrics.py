"""Counters, gauges and histograms, defined once, in a registry of their own.

Labels are bounded: statuses, reasons and states, never anything a client or an engine wrote.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from .core.workers import Fleet, State

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
SHORT_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class Metrics:
    """What the router counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        reg = self.registry
        self.requests = Counter(
            "hypic_router_requests_total", "Requests by answered status", ["code"], registry=reg
        )
        self.errors = Counter(
            "hypic_router_errors_total", "Errors of the router's own", ["reason"], registry=reg
        )
        self.ttft = Histogram(
            "hypic_router_ttft_seconds",
            "Request received to first piece of the answer",
            buckets=SECONDS,
            registry=reg,
        )
        self.inter_token = Histogram(
            "hypic_router_inter_token_seconds",
            "Between pieces of a stream",
            buckets=SHORT_SECONDS,
            registry=reg,
        )
        self.queue = Histogram(
            "hypic_router_queue_seconds",
            "Request received to sent, body parsed and engine chosen",
            buckets=SHORT_SECONDS,
            registry=reg,
        )
        self.choice = Counter(
            "hypic_router_choice_total", "Choices by reason", ["reason"], registry=reg
        )
        self.predicted = Counter(
            "hypic_router_predicted_tokens_total",
            "Tokens expected in the chosen engine's cache",
            registry=reg,
        )
        self.actual = Counter(
            "hypic_router_actual_tokens_total",
            "Tokens that engines say came from their cache",
            registry=reg,
        )
        self.running = Gauge("hypic_router_running_requests", "Requests under way", registry=reg)
        self.held = Gauge(
            "hypic_router_held_requests", "Requests that wait for engines to wake", registry=reg
        )
        self.queued = Gauge(
            "hypic_router_queued_requests", "Requests that wait for room", registry=reg
        )
        self.body_bytes = Gauge(
            "hypic_router_body_bytes", "Request bodies, in memory or on their way", registry=reg
        )
        self.retries = Counter(
            "hypic_router_retries_total", "Requests sent again", ["reason"], registry=reg
        )
        self.resyncs = Counter(
            "hypic_router_resyncs_total", "Snapshots read after missed events", registry=reg
        )
        self.engines = Gauge("hypic_router_engines", "Engines by state", ["state"], registry=reg)
        self.segments = Gauge(
            "hypic_router_segments", "Segments known to be held, all engines", registry=reg
        )

    def text(self, fleet: Fleet, *, running: int, queued: int, held: int, body_bytes: int) -> bytes:
        """The exposition, with gauges as they are now.

        Args:
            fleet: the engines.
            running: requests under way.
            queued: of those, requests that wait for room.
            held: of those, requests that wait for engines to wake.
            body_bytes: of request bodies, in memory or on their way.
        """
        self.running.set(running)
        self.queued.set(queued)
        self.held.set(held)
        self.body_bytes.set(body_bytes)
        for state in State:
            count = sum(worker.state is state for worker in fleet.workers)
            self.engines.labels(state.value).set(count)
        self.segments.set(sum(len(worker.residency.keys) for worker in fleet.workers))
        return generate_latest(self.registry)
