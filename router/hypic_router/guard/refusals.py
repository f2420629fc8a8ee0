"""What the guard refuses requests with; each knows how the client hears of it.

RouterError
+-- ClientError
|   +-- NoKeyError            401   no key, or none that is known
+-- BusyError                 429   as many wait as may
+-- WaitedError               503   no engine had room in time
+-- HeldEnoughError           503   the engines sleep, and as many are held as may be
+-- AsleepError               503   the engines did not wake in time
"""

from typing_extensions import override

from ..errors import (
    ClientError,
    DrainingError,
    LostError,
    NoEngineError,
    RouterError,
    UnreachableError,
)

# What a request may meet whose last engine has just gone to sleep.
NOTHING_DONE = (NoEngineError, DrainingError, UnreachableError, LostError)


class NoKeyError(ClientError):
    """The request carries no key that is known."""

    status = 401
    code = "invalid_api_key"

    @property
    @override
    def headers(self) -> dict[str, str]:
        """Says how a key is given."""
        return {"WWW-Authenticate": "Bearer"}


class BusyError(RouterError):
    """Every engine has as much to do as it may, and as many requests wait as may."""

    status = 429
    kind = "rate_limit_error"
    code = "queue_full"
    retry_after_s = 2


class WaitedError(RouterError):
    """No engine had room in time."""

    status = 503
    code = "queue_timeout"
    retry_after_s = 5


class HeldEnoughError(RouterError):
    """The engines sleep, and as many requests are held as may be."""

    status = 503
    code = "held_enough"
    retry_after_s = 10


class AsleepError(RouterError):
    """The engines did not wake in time."""

    status = 503
    code = "asleep"
    retry_after_s = 10
