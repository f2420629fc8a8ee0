"""One coroutine for HypicCluster, whatever the cause: observe, plan, carry out, report.

Decides nothing that `core` can decide, and keeps nothing.
"""

import logging
import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime

from . import scaler
from .applier import Applier
from .cluster import Cluster
from .core import desired, drain, refusals
from .core import plan as planning
from .core import status as statuses
from .core.api import HypicCluster, RoleName
from .core.desired import role
from .core.facts import Facts
from .core.observed import Observed
from .core.reasons import Reason
from .core.roll import Roll
from .core.scaling import Decision
from .metrics import Metrics
from .pods.asking import Asking
from .scope import Everywhere
from .settings import Settings
from .wakeups import Key

logger = logging.getLogger(__name__)

# How often is looked whether the operator that acts in a cluster's namespace still does.
_ELSEWHERE_S = 2.0


class Reconciler:
    """Makes what runs match one HypicCluster a call."""

    def __init__(
        self,
        cluster: Cluster,
        asking: Asking,
        scope: Everywhere,
        settings: Settings,
        metrics: Metrics,
    ) -> None:
        self._scope = scope
        self._cluster = cluster
        self._asking = asking
        self._applier = Applier(cluster, asking.drainer)
        self._scaler = scaler.Scaler()
        self._settings = settings
        self._metrics = metrics

    async def reconcile(self, key: Key) -> float | None:
        """Bring one HypicCluster nearer to its spec.

        Returns:
            Seconds until the next look without a cause; None when the resource is gone or going.
        """
        started_s, result = time.monotonic(), "error"
        try:
            again_s = await self._look(key)
            result = "gone" if again_s is None else "ok"
        finally:
            seconds = self._metrics.reconcile_seconds.labels(result)
            seconds.observe(time.monotonic() - started_s)
        return again_s

    async def _look(self, key: Key) -> float | None:
        if not await self._scope.acts(key.namespace):
            self._forget(key)
            return _ELSEWHERE_S
        cluster = await self._cluster.cluster(*key)
        if cluster is None or cluster.deleting:
            self._forget(key)
            return None
        observed = await self._cluster.observe(cluster)
        refusal = refusals.refusal(cluster, self._settings.policy)
        where = planning.where(cluster, observed, refusal)
        heard = await self._asking.drainer.heard(observed, drain.victims(observed, where))
        now, timeout_s = datetime.now(UTC), cluster.spec.drain.timeout_seconds
        drains = drain.drains(observed, where, heard, timeout_s=timeout_s, now=now)
        wanted = desired.children(cluster, self._settings.policy, observed)
        plan = planning.plan(observed, wanted, refusal, where, drains)
        done, blocked = await self._applier.carry_out(cluster, observed, plan, now)
        decisions = {} if refusal else self._decisions(key, cluster, observed, where)
        scaled = await self._scale(cluster, observed, decisions)
        due_s = min(
            self._ask_when_due(key, cluster, observed),
            self._read(key, cluster, observed),
            self._asking.loads.ask_when_due(key, observed),
        )
        facts = Facts(
            cluster,
            observed,
            plan,
            refusal,
            self._asking.answers.record(key),
            blocked,
            scaling=decisions,
            cache=next((reading.cache() for reading in self._asking.meter.readings(key)), None),
            progress=self._asking.loads.told(key),
            now=now,
        )
        await self._report(facts, (*done, *scaled))
        again_s = planning.look_again_in_s(observed, plan, blocked)
        return min(due_s, again_s, self._settings.resync_s)

    def _forget(self, key: Key) -> None:
        self._asking.forget(key)
        self._scaler.forget(key)
        self._metrics.conditions.forget(*key)

    def _decisions(
        self, key: Key, cluster: HypicCluster, observed: Observed, where: Roll
    ) -> Mapping[RoleName, Decision]:
        readings, probes = self._asking.meter.readings(key), self._asking.answers.asking(key)
        return self._scaler.decisions(key, cluster, observed, where, readings, probes=probes)

    async def _scale(
        self, cluster: HypicCluster, observed: Observed, decisions: Mapping[RoleName, Decision]
    ) -> tuple[Reason, ...]:
        """Set the numbers that were decided; returns which and why."""
        done = []
        for name, decision in decisions.items():
            child, current = role.child(cluster, name, observed), None
            if child is not None:
                current = child.live["spec"]["replicas"]
            if child is not None and decision.engines != current:
                await self._cluster.scale(child.live, decision.engines)
                words = f"Scaled {name} from {current} to {decision.engines}: {decision.message}"
                done.append(Reason(decision.reason, words))
        return tuple(done)

    def _read(self, key: Key, cluster: HypicCluster, observed: Observed) -> float:
        scaled_s = self._settings.scale_period_s
        period_s = scaler.period_s(cluster, observed, scaled_s=scaled_s)
        always = period_s != scaler.UNSCALED_PERIOD_S
        return self._asking.meter.read_when_due(key, observed, period_s=period_s, always=always)

    def _ask_when_due(self, key: Key, cluster: HypicCluster, observed: Observed) -> float:
        if not statuses.reachable(cluster, observed):
            return self._settings.resync_s
        ready = frozenset(pod.name for pod in observed.pods if pod.ready)
        return self._asking.answers.ask_when_due(key, cluster, ready)

    async def _report(self, facts: Facts, done: tuple[Reason, ...]) -> None:
        cluster, at = facts.cluster, facts.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        status = statuses.status(facts)
        metadata = cluster.metadata
        self._metrics.conditions.tell(metadata.namespace, metadata.name, status["conditions"])
        if status != cluster.status:
            await self._cluster.write_status(cluster, status)
        await self._report_roles(cluster, facts.observed)
        for reason in (*done, *statuses.news(cluster, status)):
            await self._tell(cluster, reason, at=at)

    async def _report_roles(self, cluster: HypicCluster, observed: Observed) -> None:
        for name in cluster.spec.roles:
            status, child = (
                role.status(cluster, name, observed),
                role.child(cluster, name, observed),
            )
            if child is not None and child.live.get("status") != status:
                await self._cluster.write_role_status(child.live, status)

    async def _tell(self, cluster: HypicCluster, reason: Reason, *, at: str) -> None:
        metadata = cluster.metadata
        logger.info("%s/%s: %s", metadata.namespace, metadata.name, reason.message)
        self._metrics.decision_total.labels(reason.reason).inc()
        name = f"{metadata.name}.{uuid.uuid4().hex[:16]}"
        await self._cluster.events.tell(cluster, reason, at=at, name=name)
