"""Asks routers and engines about drains, and tells engines to begin or end one.

Does not decide who drains, nor when one is over; `core.drain` does.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..core import names
from ..core.drain import Heard, Progress
from ..core.observed import Observed
from ..core.pods import Pod
from .calling import Caller

_DRAIN = "/pic/drain"
_ODD = (ValueError, KeyError, TypeError, AttributeError)


class Drainer:
    """Speaks to the engines and routers of a cluster.

    Args:
        caller: how pods are reached.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def heard(self, observed: Observed, victims: Iterable[Pod]) -> Mapping[str, Heard]:
        """What routers and engines say of pods that have been annotated, by the pod's name."""
        asked = [pod for pod in victims if pod.drain and pod.running]
        if not asked:
            return {}
        said = await asyncio.gather(*(self._progress(pod) for pod in asked))
        begun = all(progress is not None and progress.draining for progress in said)
        routed = set() if begun else await self._routed(observed.of_component("router"), asked)
        return {
            pod.name: Heard(pod.name in routed, progress)
            for pod, progress in zip(asked, said, strict=True)
        }

    async def close(self, pod: Pod, deadline_s: float) -> None:
        """Have an engine take no new requests; one that does not answer is asked again later."""
        body = {"deadline_s": deadline_s}
        await self._caller.ask(pod, names.ENGINE_PORT, _DRAIN, verb="POST", body=body)

    async def reopen(self, pod: Pod) -> bool:
        """Have an engine take requests again; returns whether it answered."""
        said = await self._caller.ask(pod, names.ENGINE_PORT, _DRAIN, verb="DELETE")
        return said is not None

    async def _progress(self, pod: Pod) -> Progress | None:
        said = await self._caller.ask(pod, names.ENGINE_PORT, _DRAIN)
        try:
            return None if said is None else _progress(json.loads(said))
        except _ODD:
            return None

    async def _routed(self, routers: Sequence[Pod], engines: Sequence[Pod]) -> set[str]:
        """Names of engines that a ready router may still choose, or that it may: who knows."""
        ready = [router for router in routers if router.ready]
        answers = await asyncio.gather(
            *(self._caller.ask(router, names.METRICS_PORT, "/fleet") for router in ready)
        )
        everybody, found = {pod.name for pod in engines}, set[str]()
        for answer in answers:
            try:
                found |= everybody if answer is None else _chosen(json.loads(answer))
            except _ODD:
                found |= everybody
        return found


def _progress(said: Mapping[str, Any]) -> Progress:
    return Progress(
        draining=bool(said["draining"]),
        running=int(said["running"]),
        queued=int(said["queued"]),
        transfers=int(said["transfers"]),
        oldest_s=float(said["oldest_s"]),
        left_s=float(said.get("left_s") or 0.0),
    )


def _chosen(fleet: Mapping[str, Any]) -> set[str]:
    """Names of the engines that a router does not show as draining."""
    return {str(item["name"]) for item in fleet["engines"] if not item.get("draining")}
