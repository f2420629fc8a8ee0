"""When to ask for a token through the front door, and what the answers so far mean.

Does not ask; the shell's prober does.
"""

import hashlib
import hmac
from dataclasses import dataclass, replace

RETRY_S = 2.0
FAILURES_THAT_COUNT = 2


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request through the front door ended with.

    Attributes:
        token: whether a token came back.
        reason: CamelCase word.
        message: for people.
    """

    token: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Record:
    """The answers so far, in the operator's memory only.

    Attributes:
        answer: the last one; None before the first.
        asked_s: when it was asked, on a clock that never goes back.
        failures: how many in a row, up to the last, brought no token.
        asked_of: the pods that were ready then.
    """

    answer: Answer | None = None
    asked_s: float = 0.0
    failures: int = 0
    asked_of: frozenset[str] = frozenset()

    def with_answer(self, answer: Answer, *, now_s: float, ready: frozenset[str]) -> "Record":
        """The record with one more answer."""
        failures = 0 if answer.token else self.failures + 1
        return replace(self, answer=answer, asked_s=now_s, failures=failures, asked_of=ready)


def front_key(secret: str, uid: str) -> str:
    """The operator's own key for the front door of one cluster, which no other cluster can guess.

    Args:
        secret: what the operator alone knows.
        uid: the HypicCluster's.
    """
    return hmac.new(secret.encode(), uid.encode(), hashlib.sha256).hexdigest()


def digest(key: str) -> str:
    """What routers are given of that key: enough to know it again, and of no use to ask with."""
    return hashlib.sha256(key.encode()).hexdigest()


def due_in_s(record: Record, *, ready: frozenset[str], now_s: float, period_s: float) -> float:
    """Seconds until the next request should be sent; 0 for now.

    At once when other pods are ready than were asked; soon after a failure; else in its period.
    """
    if record.answer is None or record.asked_of != ready:
        return 0.0
    wait_s = period_s if record.answer.token else RETRY_S
    return max(0.0, record.asked_s + wait_s - now_s)


def verdict(record: Record, *, served_before: bool) -> Answer | None:
    """What the record says; None while it does not contradict what was known before.

    One failure after a token may be a busy engine, so it takes two in a row to lose the condition.
    """
    if record.answer is None:
        return None
    if not record.answer.token and served_before and record.failures < FAILURES_THAT_COUNT:
        return None
    return record.answer
