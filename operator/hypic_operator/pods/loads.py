"""Asks engines that load a model how far they are, and remembers the last answers.

Does not judge them; `core.loading` does.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus

from ..core import names
from ..core.loading import Progress, followed, progress
from ..core.observed import Observed
from ..core.pods import Pod
from ..wakeups import Key
from .background import Background
from .calling import Caller

PERIOD_S = 5.0
_READY = "/pic/ready"


class Loads:
    """How far the engines of every cluster are.

    Args:
        caller: how pods are reached.
        wake: called with the cluster's key when some are further.
    """

    def __init__(self, caller: Caller, wake: Callable[[Key], None]) -> None:
        self._caller = caller
        self._told: dict[Key, Mapping[str, Progress]] = {}
        self._asked_s: dict[Key, float] = {}
        self._background = Background(wake)

    def told(self, key: Key) -> Mapping[str, Progress]:
        """The last answers, by the pod's uid."""
        return self._told.get(key, {})

    def ask_when_due(self, key: Key, observed: Observed) -> float:
        """Begin to ask if somebody loads and it is due, without waiting for the answers.

        Returns:
            Seconds until it is due again; infinity while nobody loads.
        """
        loading = [pod for pod in observed.pods if pod.loads and pod.address]
        if not loading:
            self.forget(key)
            return float("inf")
        due_s = self._asked_s.get(key, float("-inf")) + PERIOD_S - time.monotonic()
        if due_s > 0:
            return due_s
        self._asked_s[key] = time.monotonic()
        self._background.begin(key, lambda: self._ask(key, loading))
        return PERIOD_S

    def forget(self, key: Key) -> None:
        """Drop what was told."""
        self._told.pop(key, None)
        self._asked_s.pop(key, None)
        self._background.forget(key)

    async def close(self) -> None:
        """Stop asking."""
        await self._background.close()

    async def _ask(self, key: Key, pods: Sequence[Pod]) -> bool:
        answers = await asyncio.gather(*(self._progress(pod) for pod in pods))
        before = self.told(key)
        told = {
            pod.uid: known
            for pod, said in zip(pods, answers, strict=True)
            if (known := followed(before.get(pod.uid), said))
        }
        self._told[key] = told
        return told != before

    async def _progress(self, pod: Pod) -> Progress | None:
        unready = HTTPStatus.SERVICE_UNAVAILABLE
        said = await self._caller.ask(pod, names.ENGINE_PORT, _READY, also=unready)
        try:
            return None if said is None else progress(json.loads(said), at=datetime.now(UTC))
        except ValueError:
            return None
