"""One coroutine for HypicCluster, whatever the cause: observe, plan, carry out, report.

Decides nothing that `core` can decide, and keeps nothing.
"""

import logging
import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime

from . import scaler
from .cluster import Cluster
from .core import desired, drain, refusals
from .core import plan as planning
from .core import status as statuses
from .core.api import HypicCluster, RoleName
from .core.desired import role
from .core.drain import Step
from .core.facts import Facts
from .core.observed import Observed
from .core.plan import Blocked, Plan
from .core.reasons import Reason
from .core.roll import Roll
from .core.scaling import Decision
from .errors import RefusedError
from .metrics import Metrics
from .pods.drainer import Drainer
from .pods.meter import Meter
from .pods.prober import Answers
from .settings import Settings
from .wakeups import Key

logger = logging.getLogger(__name__)


class Reconciler:
    """Makes what runs match one HypicCluster a call."""

    def __init__(
        self,
        cluster: Cluster,
        answers: Answers,
        drainer: Drainer,
        meter: Meter,
        settings: Settings,
        metrics: Metrics,
    ) -> None:
        self._cluster = cluster
        self._answers = answers
        self._drainer = drainer
        self._meter = meter
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
        cluster = await self._cluster.cluster(*key)
        if cluster is None or cluster.deleting:
            for memory in (self._answers, self._meter, self._scaler):
                memory.forget(key)
            return None
        observed = await self._cluster.observe(cluster)
        refusal = refusals.refusal(cluster, self._settings.policy)
        where = planning.where(cluster, observed, refusal)
        heard = await self._drainer.heard(observed, drain.victims(observed, where))
        now, timeout_s = datetime.now(UTC), cluster.spec.drain.timeout_seconds
        drains = drain.drains(observed, where, heard, timeout_s=timeout_s, now=now)
        wanted = desired.children(cluster, self._settings.policy, observed)
        plan = planning.plan(observed, wanted, refusal, where, drains)
        done, blocked = await self._carry_out(cluster, observed, plan, now)
        decisions = {} if refusal else self._decisions(key, cluster, observed, where)
        scaled = await self._scale(cluster, observed, decisions)
        due_s = min(self._ask_when_due(key, cluster, observed), self._read(key, cluster, observed))
        facts = Facts(
            cluster,
            observed,
            plan,
            refusal,
            self._answers.record(key),
            blocked,
            scaling=decisions,
            cache=next((reading.cache() for reading in self._meter.readings(key)), None),
        )
        await self._report(facts, (*done, *scaled), now)
        again_s = planning.look_again_in_s(observed, plan, blocked)
        return min(due_s, again_s, self._settings.resync_s)

    def _decisions(
        self, key: Key, cluster: HypicCluster, observed: Observed, where: Roll
    ) -> Mapping[RoleName, Decision]:
        readings, probes = self._meter.readings(key), self._answers.asking(key)
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
        return self._meter.read_when_due(key, observed, period_s=period_s, always=always)

    async def _carry_out(
        self, cluster: HypicCluster, observed: Observed, plan: Plan, now: datetime
    ) -> tuple[tuple[Reason, ...], Blocked | None]:
        """Do what the plan says; the first thing that cannot be written stops no other.

        Returns:
            What was really done, and what could not be.
        """
        changed = {""} | await self._drain(cluster, plan, now)
        blocked = plan.taken
        for manifest in plan.apply:
            kind, name = manifest["kind"], manifest["metadata"]["name"]
            child = observed.child(kind, name)
            seen = child.live if child else None
            try:
                if await self._cluster.apply(cluster, manifest, seen=seen):
                    changed.add(f"{kind}/{name}")
            except RefusedError as error:
                words = f"{kind} {name} was refused: {error}"
                found = Blocked(planning.component_of(manifest), error.reason, words)
                blocked = blocked or found
        for to in plan.resize:
            await self._cluster.resize(cluster, to)
            changed.add(f"StatefulSet/{to.name}")
        for ref in plan.delete:
            if await self._cluster.delete(cluster, ref):
                changed.add(f"{ref.kind}/{ref.name}")
        return tuple(reason for reason in plan.reasons if reason.about in changed), blocked

    async def _drain(self, cluster: HypicCluster, plan: Plan, now: datetime) -> set[str]:
        """Carry out the steps of drains; returns the pods that were written."""
        written = set()
        for step in plan.drains.steps:
            if await self._took(cluster, step, now):
                written.add(f"Pod/{step.pod.name}")
        return written

    async def _took(self, cluster: HypicCluster, step: Step, now: datetime) -> bool:
        """Do what a drain needs next; returns whether the pod's annotation was written."""
        match step.act:
            case "annotate":
                deadline = step.deadline or now
                return await self._cluster.mark(
                    cluster, step.pod, deadline.isoformat(timespec="seconds")
                )
            case "close":
                left_s = (step.deadline or now) - now
                await self._drainer.close(step.pod, left_s.total_seconds())
                return False
            case "reopen" | "forget":
                # Routers choose it again only when it answers, or when its drain is over anyway.
                open_again = await self._drainer.reopen(step.pod) or step.act == "forget"
                return open_again and await self._cluster.mark(cluster, step.pod, None)
            case "wait" | "release":
                return False

    def _ask_when_due(self, key: Key, cluster: HypicCluster, observed: Observed) -> float:
        if not statuses.reachable(cluster, observed):
            return self._settings.resync_s
        ready = frozenset(pod.name for pod in observed.pods if pod.ready)
        return self._answers.ask_when_due(key, cluster, ready)

    async def _report(self, facts: Facts, done: tuple[Reason, ...], now: datetime) -> None:
        cluster, at = facts.cluster, now.strftime("%Y-%m-%dT%H:%M:%SZ")
        status = statuses.status(facts, now=at)
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
        await self._cluster.tell(cluster, reason, at=at, name=name)
