"""One coroutine for HypicCluster, whatever the cause: observe, plan, carry out, report.

Decides nothing that `core` can decide, and keeps nothing.
"""

import logging
import time
import uuid
from datetime import UTC, datetime

from .cluster import Cluster
from .core import desired, refusals
from .core import plan as planning
from .core import status as statuses
from .core.api import HypicCluster
from .core.desired import role
from .core.observed import Observed
from .core.plan import Blocked, Plan, Reason
from .core.status import Facts
from .errors import RefusedError
from .metrics import Metrics
from .prober import Answers
from .settings import Settings
from .wakeups import Key

logger = logging.getLogger(__name__)


class Reconciler:
    """Makes what runs match one HypicCluster a call."""

    def __init__(
        self, cluster: Cluster, answers: Answers, settings: Settings, metrics: Metrics
    ) -> None:
        self._cluster = cluster
        self._answers = answers
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
            self._answers.forget(key)
            return None
        observed = await self._cluster.observe(cluster)
        policy = self._settings.policy
        refusal = refusals.refusal(cluster, policy)
        wanted = desired.children(cluster, policy, observed)
        plan = planning.plan(cluster, observed, wanted, refusal)
        done, blocked = await self._carry_out(cluster, observed, plan)
        due_s = self._ask_when_due(key, cluster, observed)
        record = self._answers.record(key)
        await self._report(Facts(cluster, observed, plan, refusal, record, blocked), done)
        return min(due_s, planning.look_again_in_s(observed, blocked), self._settings.resync_s)

    async def _carry_out(
        self, cluster: HypicCluster, observed: Observed, plan: Plan
    ) -> tuple[tuple[Reason, ...], Blocked | None]:
        """Write what the plan says; the first thing that cannot be written stops no other.

        Returns:
            What was really done, and what could not be.
        """
        blocked, changed = plan.taken, {""}
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
        for ref in plan.idle:
            await self._cluster.idle(cluster, ref)
        for ref in plan.delete:
            await self._cluster.delete(cluster, ref)
        return tuple(reason for reason in plan.reasons if reason.about in changed), blocked

    def _ask_when_due(self, key: Key, cluster: HypicCluster, observed: Observed) -> float:
        if not statuses.reachable(cluster, observed):
            return self._settings.resync_s
        ready = frozenset(pod.name for pod in observed.pods if pod.ready)
        return self._answers.ask_when_due(key, cluster, ready)

    async def _report(self, facts: Facts, done: tuple[Reason, ...]) -> None:
        cluster, now = facts.cluster, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        status = statuses.status(facts, now=now)
        if status != cluster.status:
            await self._cluster.write_status(cluster, status)
        await self._report_roles(cluster, facts.observed)
        for reason in done:
            await self._tell(cluster, reason, now=now, alarming=False)
        news = statuses.news(cluster, status)
        if news is not None:
            reason = Reason(news.reason, news.message)
            await self._tell(cluster, reason, now=now, alarming=statuses.alarming(news))

    async def _report_roles(self, cluster: HypicCluster, observed: Observed) -> None:
        for name in cluster.spec.roles:
            status, child = (
                role.status(cluster, name, observed),
                role.child(cluster, name, observed),
            )
            if child is not None and child.live.get("status") != status:
                await self._cluster.write_role_status(child.live, status)

    async def _tell(
        self, cluster: HypicCluster, reason: Reason, *, now: str, alarming: bool
    ) -> None:
        metadata = cluster.metadata
        logger.info("%s/%s: %s", metadata.namespace, metadata.name, reason.message)
        self._metrics.decision_total.labels(reason.reason).inc()
        name = f"{metadata.name}.{uuid.uuid4().hex[:16]}"
        await self._cluster.tell(cluster, reason, alarming=alarming, at=now, name=name)
