"""Who gets in, and when: API keys, the queue before busy engines, the hold before sleeping ones."""

from collections.abc import Sequence
from dataclasses import dataclass

from .admission import Admission
from .keys import Keys
from .refusals import NoKeyError


@dataclass(frozen=True, slots=True)
class Guard:
    """What stands before the engines.

    Attributes:
        keys: the valid ones; ``None`` where none is asked for.
        admission: lets requests through.
    """

    keys: Keys | None
    admission: Admission

    def check(self, authorization: str) -> None:
        """Whether the request may come in.

        Raises:
            NoKeyError: it carries no valid key.
        """
        if self.keys is not None and not self.keys.admit(authorization):
            raise NoKeyError("give a valid API key as Authorization: Bearer ...")

    def without_key(self, headers: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
        """The headers as engines may see them: a key that was checked here ends here."""
        if self.keys is None:
            return headers
        return [pair for pair in headers if pair[0].lower() != "authorization"]
