"""Whoever asks the pods of clusters something, put together once.

Does not know what is asked, nor what follows from the answers.
"""

import asyncio
from collections.abc import Callable

from ..metrics import Metrics
from ..wakeups import Key
from .calling import Caller
from .drainer import Drainer
from .loads import Loads
from .meter import Meter
from .prober import Answers, Prober


class Asking:
    """Tokens, drains, gauges and loads.

    Args:
        caller: how pods are reached.
        prober: who asks for tokens.
        wake: called with a cluster's key when an answer is news.
        metrics: what is counted.
        probe_period_s: how often a token is asked for at rest.

    Attributes:
        answers: what came back from front doors.
        drainer: what is left of drains.
        meter: what engines and routers count.
        loads: how far engines are with the model.
    """

    def __init__(
        self,
        caller: Caller,
        prober: Prober,
        wake: Callable[[Key], None],
        metrics: Metrics,
        *,
        probe_period_s: float,
    ) -> None:
        self.answers = Answers(prober, wake, metrics, period_s=probe_period_s)
        self.drainer = Drainer(caller)
        self.meter = Meter(caller, wake)
        self.loads = Loads(caller, wake)

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a cluster that is gone."""
        for memory in (self.answers, self.meter, self.loads):
            memory.forget(key)

    async def close(self) -> None:
        """Stop asking."""
        memories = (self.answers, self.meter, self.loads)
        await asyncio.gather(*(memory.close() for memory in memories))
