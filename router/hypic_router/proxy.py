"""Serves one request from the fleet: chooses an engine, and another where that is safe.

Counts what it does and says why; how one engine is spoken to is in `exchange`.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from . import tracing
from .asking.exchange import Exchange
from .asking.pair import Pair
from .asking.relay import Told, Tools
from .call import Call, Caller
from .core import budget as budgets
from .core import pairs
from .core.budget import Budget
from .core.choose import Choice, candidates, choose, nobody, partner
from .core.prompt import Prompt
from .core.score import POLICIES
from .errors import (
    BrokenError,
    ClosingError,
    DrainingError,
    EngineError,
    LateError,
    LostError,
    NoEngineError,
    PairError,
    StaleError,
    UnreachableError,
)

# A request that broke as many engines may be what breaks them.
ENGINES_ONE_REQUEST_MAY_BREAK = 2

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Course:
    """How far one request has come."""

    tried: list[str] = field(default_factory=list)
    fresh: bool = False
    attempts: int = 0
    broke: int = 0


class Proxy:
    """Serves requests from the fleet."""

    def __init__(self, tools: Tools, *, policy: str) -> None:
        self._tools = tools
        self._policy = POLICIES[policy]
        self._budget = Budget()
        self._turn = 0

    async def serve(self, call: Call, prompt: Prompt, caller: Caller) -> int:
        """Answers one request and returns the status that was sent.

        Raises:
            NoEngineError: nobody can be asked.
            EngineError: those who were asked failed, and nothing has reached the client.
        """
        self._budget = budgets.earned(self._budget)
        course = _Course()
        failure: EngineError | None = None
        while True:
            choice = self._choose(prompt, course.tried)
            if choice is None:
                raise failure or NoEngineError(nobody(self._tools.store.snapshot, course.tried))
            try:
                return await self._at(choice, call, prompt, caller, course)
            except EngineError as error:
                failure = error
            log.warning(
                "Engine failed a request",
                extra={
                    "engines": list(failure.at),
                    "reason": failure.code,
                    "detail": str(failure),
                    "request_id": call.request_id,
                },
            )
            if not self._again(course, failure):
                raise failure
            self._tools.metrics.retries.labels(failure.code).inc()

    def _choose(self, prompt: Prompt, tried: Sequence[str]) -> Choice | None:
        self._turn += 1
        return choose(
            prompt,
            self._tools.store.snapshot,
            self._policy,
            turn=self._turn,
            now_s=time.monotonic(),
            tried=tried,
        )

    def _partner(self, choice: Choice, tried: Sequence[str]) -> Choice | None:
        fleet, now_s = self._tools.store.snapshot, time.monotonic()
        return partner(choice, fleet, turn=self._turn, now_s=now_s, tried=tried)

    def _again(self, course: _Course, failure: EngineError) -> bool:
        """Whether to send the request once more; where, is for the next choice."""
        if isinstance(failure, StaleError) and not course.fresh:
            course.fresh = True
            return True
        course.attempts += 1
        self._exclude(course, failure)
        course.broke += isinstance(failure, BrokenError | StaleError | PairError)
        safe = isinstance(failure, UnreachableError | DrainingError | LostError)
        safe = safe or course.broke < ENGINES_ONE_REQUEST_MAY_BREAK
        late = isinstance(failure, LateError | ClosingError)
        if late or not safe or course.attempts >= self._tools.limits.attempts:
            return False
        if not self._budget.allows():
            return False
        self._budget = budgets.spent(self._budget)
        return True

    def _exclude(self, course: _Course, failure: EngineError) -> None:
        """Asks others next: of a pair that failed neither one, if there are others for both."""
        both = [*course.tried, *failure.at]
        fleet, now_s = self._tools.store.snapshot, time.monotonic()
        if len(failure.at) > 1 and not candidates(fleet, both, now_s):
            both = [*course.tried, pairs.name(*failure.at)]
        course.tried = both

    async def _at(
        self, choice: Choice, call: Call, prompt: Prompt, caller: Caller, course: _Course
    ) -> int:
        """Asks one engine or pair; raises only while nothing has reached the client."""
        decode = self._partner(choice, course.tried) if prompt.generates else None
        if decode is not None:
            asking = Pair(self._tools, choice, decode, call).run(prompt, caller, fresh=course.fresh)
        else:
            ticket = self._tools.store.dispatched(choice)
            told = Told(ticket.at.name, choice)
            asking = Exchange(self._tools, ticket, call, prompt, told, course.fresh).ask(caller)
        self._tools.metrics.choice.labels(choice.label).inc()
        self._tools.metrics.queue.observe(time.monotonic() - call.received_s)
        tracing.chosen(choice)
        if log.isEnabledFor(logging.DEBUG):
            _log(choice, call)
        return await asking


def _log(choice: Choice, call: Call) -> None:
    log.debug(
        "Chose an engine",
        extra={
            "engine": choice.worker.at.name,
            "choice": choice.label,
            "reason": choice.reason,
            "request_id": call.request_id,
        },
    )
