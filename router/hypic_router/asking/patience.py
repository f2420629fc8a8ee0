"""How long an engine is waited for, cut short by news that it is lost.

Does not know what is waited for.
"""

import asyncio
import contextlib

from ..errors import EngineError


class Patience:
    """The limit of one wait at a time.

    Attributes:
        given_up: why it ended early; ``None`` while it has not.
    """

    def __init__(self) -> None:
        self._scope: asyncio.Timeout | None = None
        self.given_up: EngineError | None = None

    def within(self, seconds: float) -> asyncio.Timeout:
        """A scope for the next wait."""
        self._scope = asyncio.timeout(0 if self.given_up is not None else seconds)
        return self._scope

    def give_up(self, reason: EngineError) -> None:
        """It is no use to wait any longer; between two waits, the next one ends at once."""
        if self._scope is not None and self.given_up is None:
            self.given_up = reason
            with contextlib.suppress(RuntimeError):  # of a scope that was left
                self._scope.reschedule(asyncio.get_running_loop().time())

    def renew(self, until_s: float) -> None:
        """Something came: waits until then, by the event loop's clock."""
        if self._scope is not None and self.given_up is None:
            self._scope.reschedule(until_s)
