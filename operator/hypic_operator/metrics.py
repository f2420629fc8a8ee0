"""Counters and histograms of the operator, made once for each registry.

Does not serve them.
"""

from prometheus_client import CollectorRegistry, Counter, Histogram

_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0, 30.0)


class Metrics:
    """What is measured.

    Attributes:
        reconcile_seconds: how long one look at a HypicCluster took, by what it ended with.
        wait_seconds: how long a HypicCluster that was due to be looked at waited for its turn.
        decision_total: what was done, by the word that its event bears.
        write_total: requests that change something, by verb and kind.
        probe_total: requests for a token, by what they ended with.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.reconcile_seconds = Histogram(
            "hypic_operator_reconcile_seconds",
            "Seconds of one look at a HypicCluster",
            ("result",),
            buckets=_SECONDS,
            registry=registry,
        )
        self.wait_seconds = Histogram(
            "hypic_operator_wait_seconds",
            "Seconds from when a look at a HypicCluster was due until it began",
            buckets=_SECONDS,
            registry=registry,
        )
        self.decision_total = Counter(
            "hypic_operator_decision_total", "Things done", ("kind",), registry=registry
        )
        self.write_total = Counter(
            "hypic_operator_write_total",
            "Requests to kube-apiserver that change something",
            ("verb", "kind"),
            registry=registry,
        )
        self.probe_total = Counter(
            "hypic_operator_probe_total", "Requests for a token", ("result",), registry=registry
        )
