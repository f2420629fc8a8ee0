"""Counters and histograms of the operator, made once for each registry.

Does not serve them.
"""

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0, 30.0)
_CUT = "DrainTimedOut"


class Conditions(Collector):
    """The conditions of every HypicCluster, as they were written last."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], Sequence[Mapping[str, str]]] = {}

    def tell(self, namespace: str, name: str, conditions: Sequence[Mapping[str, str]]) -> None:
        """Count these from now on, in place of those told before of the same HypicCluster."""
        self._told[namespace, name] = conditions

    def forget(self, namespace: str, name: str) -> None:
        """Count none of a HypicCluster that is gone."""
        self._told.pop((namespace, name), None)

    @override
    def collect(self) -> Iterator[GaugeMetricFamily]:
        labels = ("namespace", "cluster", "type", "status", "reason")
        found = GaugeMetricFamily(
            "hypic_operator_condition", "1 for what a condition says now", labels=labels
        )
        for place, conditions in tuple(self._told.items()):
            for item in conditions:
                found.add_metric((*place, item["type"], item["status"], item["reason"]), 1.0)
        yield found


class Metrics:
    """What is measured.

    Attributes:
        reconcile_seconds: how long one look at a HypicCluster took, by what it ended with.
        conditions: of every HypicCluster, a number of 1 each.
        wait_seconds: how long a HypicCluster that was due to be looked at waited for its turn.
        decision_total: what was done, by the word that its event bears.
        write_total: requests that change something, by verb and kind.
        probe_total: requests for a token, by what they ended with.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.conditions = Conditions()
        registry.register(self.conditions)
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
        self.decision_total.labels(_CUT)  # there before the first one, so that it is an increase
        self.write_total = Counter(
            "hypic_operator_write_total",
            "Requests to kube-apiserver that change something",
            ("verb", "kind"),
            registry=registry,
        )
        self.probe_total = Counter(
            "hypic_operator_probe_total", "Requests for a token", ("result",), registry=registry
        )
