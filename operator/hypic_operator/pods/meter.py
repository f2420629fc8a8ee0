"""Reads what engines and routers count, now and then, and remembers the last two readings.

Does not judge them; `core.scaling` does.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from ..core import names
from ..core.observed import Observed
from ..core.pods import Pod
from ..core.scaling.gauges import EngineGauges, Reading
from ..wakeups import Key
from .background import Background
from .calling import Caller

# How soon engines and routers are read that became ready since.
OTHERS_PERIOD_S = 1.0


class Meter:
    """The readings of every cluster; one at a time for each.

    Args:
        caller: how pods are reached.
        wake: called with the cluster's key when a reading says something new.
    """

    def __init__(self, caller: Caller, wake: Callable[[Key], None]) -> None:
        self._caller = caller
        self._last: dict[Key, tuple[Reading, ...]] = {}
        self._background = Background(wake)

    def readings(self, key: Key) -> tuple[Reading, ...]:
        """The last reading, and the one before it where there is one."""
        return self._last.get(key, ())

    def read_when_due(
        self, key: Key, observed: Observed, *, period_s: float, always: bool
    ) -> float:
        """Begin a reading if one is due, without waiting for it.

        Args:
            key: the cluster's.
            observed: what runs.
            period_s: how often it is due.
            always: whether the cluster is woken whatever the reading says.

        Returns:
            Seconds until the next one is due.
        """
        last = self.readings(key)
        if last and last[0].asked != _asked(observed):
            period_s = min(period_s, OTHERS_PERIOD_S)
        due_s = last[0].at_s + period_s - time.monotonic() if last else 0.0
        if due_s > 0:
            return due_s
        self._background.begin(key, lambda: self._read(key, observed, always=always))
        return period_s

    def forget(self, key: Key) -> None:
        """Drop the readings of a cluster that is gone."""
        self._last.pop(key, None)
        self._background.forget(key)

    async def close(self) -> None:
        """Stop reading."""
        await self._background.close()

    async def _read(self, key: Key, observed: Observed, *, always: bool) -> bool:
        ready = _ready(observed)
        engines = [pod for pod in ready if pod.revision]
        routers = [pod for pod in ready if pod.component == "router"]
        counted, fleets = await asyncio.gather(
            asyncio.gather(*(self._engine(pod) for pod in engines)),
            asyncio.gather(*(self._router(pod) for pod in routers)),
        )
        before = self.readings(key)[:1]
        asked = _asked(observed)
        self._last[key] = (_reading(asked, engines, counted, fleets), *before)
        return always or not before or _says_more(self._last[key][0], before[0])

    async def _engine(self, pod: Pod) -> EngineGauges | None:
        said = await self._caller.ask(pod, names.ENGINE_PORT, "/metrics")
        try:
            return None if said is None else _gauges(said)
        except ValueError:
            return None

    async def _router(self, pod: Pod) -> Mapping[str, Any] | None:
        said = await self._caller.ask(pod, names.METRICS_PORT, "/fleet")
        try:
            fleet = None if said is None else json.loads(said)
        except ValueError:
            return None
        return fleet if isinstance(fleet, dict) and "engines" in fleet else None


def _ready(observed: Observed) -> list[Pod]:
    return [pod for pod in observed.pods if pod.ready and pod.address]


def _asked(observed: Observed) -> frozenset[str]:
    return frozenset(pod.uid for pod in _ready(observed))


def _reading(
    asked: frozenset[str],
    engines: Sequence[Pod],
    counted: Sequence[EngineGauges | None],
    fleets: Sequence[Mapping[str, Any] | None],
) -> Reading:
    known = {pod.uid: item for pod, item in zip(engines, counted, strict=True) if item}
    shown = tuple(fleet for fleet in fleets if fleet is not None)
    silent = len(counted) - len(known) + len(fleets) - len(shown)
    return Reading(time.monotonic(), known, shown, silent, asked)


def _says_more(now: Reading, before: Reading) -> bool:
    """Whether somebody would decide or say something else."""
    return now.cache() != before.cache() or bool(now.silent) != bool(before.silent)


def _gauges(text: str) -> EngineGauges:
    ours = "\n".join(line for line in text.splitlines() if line.startswith("hypic_engine_"))
    families = text_string_to_metric_families(ours + "\n")
    return EngineGauges.of(
        (sample.name, sample.labels, sample.value)
        for family in families
        for sample in family.samples
    )
