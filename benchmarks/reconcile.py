"""What 500 HypicClusters cost the operator, on a real kube-apiserver and etcd.

    make bench-operator          # or: python benchmarks/reconcile.py [--clusters 500]

The operator is a process of its own. Controllers and kubelets are played by this one, which reports
every pod ready; the front door is played too. The clusters are made all at once; then nothing is
changed while everything is looked at several times; then one in ten gets a new revision; then the
operator is started again. Prints a table, and one last line: a look's own time, from its first
request to its last; how long it had been due before it began is a column of the table.
"""

import argparse
import asyncio
import contextlib
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from hypic_operator import __main__ as operator_main  # noqa: E402
from hypic_operator.metrics import Metrics  # noqa: E402
from hypic_operator.settings import Settings  # noqa: E402
from tests.support import apiserver, resources  # noqa: E402
from tests.support.apiserver import ApiServer  # noqa: E402
from tests.support.controllers import Controllers  # noqa: E402
from tests.support.playing import Namespace, PlayedProber  # noqa: E402
from tests.support.waiting import eventually  # noqa: E402

NAMESPACES = 10
RESYNC_S = 20.0
REST_S = 60.0
WITHIN_S = 900.0
METRICS_PORT = 17_190
# Seconds of a look at a HypicCluster, and seconds that it was due before it began.
LOOKS, WAITS = "reconcile", "wait"
REQUESTS = ("hypic_operator_write_total", "hypic_operator_reconcile_seconds_count")


def child(kubeconfig: str) -> None:
    """The operator, with a front door that always answers."""
    settings = Settings(
        resources.POLICY,
        metrics_port=METRICS_PORT,
        health_port=0,
        resync_s=RESYNC_S,
        kubeconfig=kubeconfig,
    )
    asyncio.run(operator_main.run(settings, Metrics(CollectorRegistry()), prober=PlayedProber()))


class Operator:
    """The operator's process."""

    def __init__(self, kubeconfig: Path) -> None:
        command = [sys.executable, __file__, "--child", str(kubeconfig)]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def samples(self) -> dict[str, float]:
        """Its metrics, empty while it does not answer; labels are dropped and values added."""
        found: dict[str, float] = {}
        url = f"http://127.0.0.1:{METRICS_PORT}/metrics"
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=10) as answer:
            for family in text_string_to_metric_families(answer.read().decode()):
                for sample in family.samples:
                    edge = sample.labels.get("le", "")
                    name = sample.name + (f" {edge}" if edge else "")
                    found[name] = found.get(name, 0.0) + sample.value
        return found

    def rss_mib(self) -> float:
        """Its resident memory at its highest."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024

    def end(self) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.wait(30)


def quantile_ms(
    samples: dict[str, float], before: dict[str, float], share: float, *, histogram: str = LOOKS
) -> float:
    """A quantile of what was measured between two readings, as Prometheus would give it."""
    name, lower, below = f"hypic_operator_{histogram}_seconds_bucket", 0.0, 0.0
    edges = sorted(float(key.split()[1]) for key in samples if key.startswith(f"{name} "))
    counts = {
        edge: sum(
            (samples.get(f"{name} {text}", 0.0) - before.get(f"{name} {text}", 0.0))
            for text in {str(edge), "+Inf" if edge == float("inf") else str(edge)}
        )
        for edge in edges
    }
    rank = share * counts[edges[-1]]
    for edge in edges:
        if counts[edge] >= rank and edge != float("inf"):
            within = (rank - below) / max(counts[edge] - below, 1e-9)
            return 1000 * (lower + within * (edge - lower))
        lower, below = edge, counts[edge]
    return float("inf")


def _ready(namespaces: list[Namespace], generation_at_least: dict[str, int]) -> int:
    """How many clusters are ready as their spec is now."""
    count = 0
    for namespace in namespaces:
        for item in namespace.listed("HypicCluster"):
            status, metadata = item.get("status", {}), item["metadata"]
            current = status.get("observedGeneration") == metadata["generation"]
            ready = {c["type"]: c["status"] for c in status.get("conditions", ())}
            settled = (ready.get("Ready"), ready.get("Progressing")) == ("True", "False")
            count += current and settled
            count -= metadata["generation"] < generation_at_least.get(metadata["name"], 0)
    return count


@contextlib.contextmanager
def _world(server: ApiServer) -> Iterator[list[Namespace]]:
    """Definitions, rights, namespaces, and controllers in each of them."""
    for file in (ROOT / "crds").glob("*.yaml"):
        body = yaml.safe_load(file.read_text())
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert server.request("POST", path, body)[0] == 201
    served = "/apis/serving.hypic.dev/v1alpha1/hypicclusters"
    eventually(lambda: server.request("GET", served)[0] == 200)
    namespaces = [Namespace(server, f"bench-{n}") for n in range(NAMESPACES)]
    with contextlib.ExitStack() as stack:
        for namespace in namespaces:
            body = {"metadata": {"name": namespace.name}}
            assert server.request("POST", "/api/v1/namespaces", body)[0] == 201
            stack.enter_context(Controllers(namespace, period_s=2.0))
        yield namespaces


def _row(phase: str, took_s: float, now: dict[str, float], before: dict[str, float]) -> None:
    looks = now[REQUESTS[1]] - before.get(REQUESTS[1], 0.0)
    p50, p99 = (quantile_ms(now, before, share) for share in (0.5, 0.99))
    waited = quantile_ms(now, before, 0.99, histogram=WAITS)
    row = f"{phase:<28} {took_s:>8.0f} {looks:>8.0f} {p50:>8.0f} {p99:>8.0f} {waited:>14.0f}"
    print(row, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=500)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child)
        return
    with apiserver.running() as server, _world(server) as namespaces:
        measured(server, namespaces, given.clusters)


def measured(server: ApiServer, namespaces: list[Namespace], clusters: int) -> None:
    """Go through the phases and print what they took."""
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {clusters} HypicClusters")
    head = f"{'phase':<28} {'seconds':>8} {'looks':>8} {'p50 ms':>8} {'p99 ms':>8}"
    print(f"{head} {'p99 waited ms':>14}")
    operator = Operator(server.kubeconfig())
    try:
        started_s = time.monotonic()
        for n in range(clusters):
            namespaces[n % NAMESPACES].create(resources.manifest(f"c{n}"))
        eventually(lambda: _ready(namespaces, {}), until=clusters.__eq__, within_s=WITHIN_S)
        made = operator.samples()
        _row("made, until all are ready", time.monotonic() - started_s, made, {})
        before = _rested(operator)
        time.sleep(REST_S)
        after = operator.samples()
        writes = after[REQUESTS[0]] - before[REQUESTS[0]]
        _row("at rest, looked at again", REST_S, after, before)
        started_s, changed = time.monotonic(), {}
        for n in range(0, clusters, 10):
            patch = {"spec": {"pic": {"seam": "16"}}}
            namespaces[n % NAMESPACES].patch("HypicCluster", f"c{n}", patch)
            changed[f"c{n}"] = 2
        eventually(lambda: _ready(namespaces, changed), until=clusters.__eq__, within_s=WITHIN_S)
        rolled = operator.samples()
        _row("one in ten rolled", time.monotonic() - started_s, rolled, after)
        p50, p99 = (quantile_ms(rolled, {}, share) for share in (0.5, 0.99))
        rss = operator.rss_mib()
    finally:
        operator.end()
    again = Operator(server.kubeconfig())
    try:
        started_s = time.monotonic()
        looks = eventually(
            again.samples,
            until=lambda seen: seen.get(REQUESTS[1], 0.0) >= clusters,
            within_s=WITHIN_S,
        )
        _row("the operator started again", time.monotonic() - started_s, looks, {})
        rss = max(rss, again.rss_mib())
    finally:
        again.end()
    print(
        f"operator: {clusters} clusters, reconcile p50 {p50:.0f} ms p99 {p99:.0f} ms, "
        f"rss {rss:.0f} MiB, writes at rest {writes:.0f}"
    )


def _rested(operator: Operator) -> dict[str, float]:
    """Its metrics once what was begun has been written."""
    while True:
        before = operator.samples()
        time.sleep(RESYNC_S / 2)
        after = operator.samples()
        if after[REQUESTS[0]] == before[REQUESTS[0]]:
            return after


if __name__ == "__main__":
    main()
