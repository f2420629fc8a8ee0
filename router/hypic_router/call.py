"""One request as it is passed on, and what is needed of whoever made it.

Knows no HTTP library and no engine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Reply(Protocol):
    """An answer to the client that has begun."""

    async def write(self, data: bytes) -> None:
        """Sends bytes, once there is room for them."""

    async def end(self) -> None:
        """Ends the body as HTTP says."""

    def abort(self) -> None:
        """Ends the connection instead, so that the client sees that something is missing."""


class Caller(Protocol):
    """Who asked, and the way back."""

    async def begin(
        self, status: int, headers: Sequence[tuple[str, str]], length: int | None
    ) -> Reply:
        """Starts the answer."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request to pass on.

    Attributes:
        method: HTTP method for the engine.
        target: path and query, percent-encoded.
        headers: as the client sent them.
        body: as the client sent it.
        request_id: from the client, or made up.
        received_s: when its head had arrived, by the monotonic clock.
        explain: whether the answer tells which engine was chosen and why.
    """

    method: str
    target: str
    headers: Sequence[tuple[str, str]]
    body: bytes
    request_id: str
    received_s: float
    explain: bool = False
