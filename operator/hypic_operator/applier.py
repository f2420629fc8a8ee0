"""Carries out a plan: tells pods to finish, makes objects what they should be, deletes others.

Decides nothing, and reports nothing.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from .cluster import Cluster
from .core import desired
from .core import plan as planning
from .core.api import HypicCluster
from .core.difference import Manifest
from .core.drain import Step
from .core.observed import Observed
from .core.plan import Blocked, Plan
from .core.reasons import Reason
from .errors import RefusedError
from .pods.drainer import Drainer


class Applier:
    """Writes what a plan says.

    Args:
        cluster: where it writes.
        drainer: who tells engines to begin and end a drain.
    """

    def __init__(self, cluster: Cluster, drainer: Drainer) -> None:
        self._cluster = cluster
        self._drainer = drainer

    async def carry_out(
        self, cluster: HypicCluster, observed: Observed, plan: Plan, now: datetime
    ) -> tuple[tuple[Reason, ...], Blocked | None]:
        """Do what the plan says; the first thing that cannot be written stops no other.

        Returns:
            What was really done, and what could not be.
        """
        changed = {""} | await self._drain(cluster, plan, now)
        blocked = plan.taken
        for stage in desired.stages(plan.apply):
            written, refused = await self._apply(cluster, observed, stage)
            changed |= written
            blocked = blocked or refused
        for to in plan.resize:
            await self._cluster.resize(cluster, to)
            changed.add(f"StatefulSet/{to.name}")
        for ref in plan.delete:
            if await self._cluster.delete(cluster, ref):
                changed.add(f"{ref.kind}/{ref.name}")
        return tuple(reason for reason in plan.reasons if reason.about in changed), blocked

    async def _apply(
        self, cluster: HypicCluster, observed: Observed, manifests: Sequence[Manifest]
    ) -> tuple[set[str], Blocked | None]:
        """Write all of them at once; returns which have changed, and the first that was refused."""
        answers = await asyncio.gather(
            *(self._applied(cluster, observed, manifest) for manifest in manifests),
            return_exceptions=True,  # so that none is still being written when this returns
        )
        written, refused = set(), None
        for manifest, answer in zip(manifests, answers, strict=True):
            kind, name = manifest["kind"], manifest["metadata"]["name"]
            if isinstance(answer, RefusedError):
                words = f"{kind} {name} was refused: {answer}"
                component = planning.component_of(manifest)
                refused = refused or Blocked(component, answer.reason, words)
            elif isinstance(answer, BaseException):
                raise answer
            elif answer:
                written.add(f"{kind}/{name}")
        return written, refused

    async def _applied(self, cluster: HypicCluster, observed: Observed, manifest: Manifest) -> bool:
        child = observed.child(manifest["kind"], manifest["metadata"]["name"])
        return await self._cluster.apply(cluster, manifest, seen=child.live if child else None)

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
