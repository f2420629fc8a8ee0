"""Asks routers and engines about drains, and tells engines to begin or end one.

Does not decide who drains, nor when one is over; `core.drain` does.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import aiohttp

from .core import names
from .core.drain import Heard, Progress
from .core.observed import Observed, Pod

ANSWER_WITHIN_S = 2.0
_DRAIN = "/pic/drain"
_UNREACHABLE = (aiohttp.ClientError, TimeoutError, OSError, ValueError, KeyError, TypeError)


class Drainer:
    """Speaks to the pods of a cluster by their addresses.

    Args:
        session: what it sends with.
        engine_port: where engines answer.
        metrics_port: where routers tell which engines they know.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        engine_port: int = names.ENGINE_PORT,
        metrics_port: int = names.METRICS_PORT,
    ) -> None:
        self._session = session
        self._engine_port = engine_port
        self._metrics_port = metrics_port

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
        await self._ask("POST", pod, self._engine_port, _DRAIN, {"deadline_s": deadline_s})

    async def reopen(self, pod: Pod) -> bool:
        """Have an engine take requests again; returns whether it answered."""
        return await self._ask("DELETE", pod, self._engine_port, _DRAIN) is not None

    async def _progress(self, pod: Pod) -> Progress | None:
        said = await self._ask("GET", pod, self._engine_port, _DRAIN)
        try:
            return None if said is None else _progress(said)
        except _UNREACHABLE:
            return None

    async def _routed(self, routers: Sequence[Pod], engines: Sequence[Pod]) -> set[str]:
        """Names of engines that a ready router may still choose, or that it may: who knows."""
        ready = [router for router in routers if router.ready]
        answers = await asyncio.gather(
            *(self._ask("GET", router, self._metrics_port, "/fleet") for router in ready)
        )
        found: set[str] = set()
        for answer in answers:
            found |= {pod.name for pod in engines} if answer is None else _chosen(answer)
        return found

    async def _ask(
        self, verb: str, pod: Pod, port: int, path: str, body: Any = None
    ) -> Mapping[str, Any] | None:
        host = f"[{pod.address}]" if ":" in pod.address else pod.address
        timeout = aiohttp.ClientTimeout(total=ANSWER_WITHIN_S)
        url = f"http://{host}:{port}{path}"
        try:
            async with self._session.request(verb, url, json=body, timeout=timeout) as answer:
                if answer.status >= HTTPStatus.BAD_REQUEST:
                    return None
                said: Mapping[str, Any] = await answer.json(content_type=None) or {}
                return said
        except _UNREACHABLE:
            return None


def _progress(said: Mapping[str, Any]) -> Progress:
    return Progress(
        draining=bool(said["draining"]),
        running=int(said["running"]),
        queued=int(said["queued"]),
        transfers=int(said["transfers"]),
        oldest_s=float(said["oldest_s"]),
    )


def _chosen(fleet: Mapping[str, Any]) -> set[str]:
    """Names of the engines that a router does not show as draining."""
    return {str(item["name"]) for item in fleet.get("engines", ()) if not item.get("draining")}
