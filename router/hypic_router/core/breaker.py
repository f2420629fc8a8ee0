"""Whether an engine that failed is to be tried again, one breaker for all requests to it.

Counts failures of the connection and of the engine's framing, never an answer that the engine gave.
"""

from dataclasses import dataclass, replace

FAILURES_TO_OPEN = 3
FIRST_OPEN_S = 2.0
LONGEST_OPEN_S = 30.0


@dataclass(frozen=True, slots=True)
class Breaker:
    """Consecutive failures, and until when nothing is sent.

    Attributes:
        failures: in a row, since the last success.
        opened: times it opened in a row; each doubles the pause.
        until_s: no request before this moment; 0 while closed.
        trying: whether the one request that tests an engine after its pause is under way.
    """

    failures: int = 0
    opened: int = 0
    until_s: float = 0.0
    trying: bool = False

    def admits(self, now_s: float) -> bool:
        """Whether a request may be sent now."""
        return self.until_s == 0.0 or (now_s >= self.until_s and not self.trying)

    def state(self, now_s: float) -> str:
        """Closed, open or half-open, for people."""
        if self.until_s == 0.0:
            return "closed"
        return "half-open" if now_s >= self.until_s else "open"


CLOSED = Breaker()


def sent(breaker: Breaker) -> Breaker:
    """The breaker once a request has been sent: an open one is being tried."""
    return breaker if breaker.until_s == 0.0 else replace(breaker, trying=True)


def succeeded(_breaker: Breaker) -> Breaker:
    """The breaker once the engine has answered."""
    return CLOSED


def released(breaker: Breaker) -> Breaker:
    """The breaker once a request has ended without saying anything about the engine."""
    return breaker if not breaker.trying else replace(breaker, trying=False)


def failed(breaker: Breaker, now_s: float) -> Breaker:
    """The breaker once a request has failed for the engine's fault."""
    failures = breaker.failures + 1
    reopened = breaker.trying and now_s >= breaker.until_s
    if not reopened and (failures < FAILURES_TO_OPEN or breaker.until_s > now_s):
        return replace(breaker, failures=failures)
    pause_s = min(FIRST_OPEN_S * 2**breaker.opened, LONGEST_OPEN_S)
    return Breaker(failures, min(breaker.opened + 1, 10), now_s + pause_s)
