"""Reads request bodies, each within its limits and all of them within one budget of memory.

Does not look into them. A body counts until whoever asked for it is done, since it is kept to be
sent again where an engine fails.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from ..errors import BodyTooLargeError, BodyTooSlowError, CrowdedError
from ..settings import Limits
from .request import Request


@dataclass(slots=True)
class Bodies:
    """The bodies that are in memory or on their way.

    Attributes:
        limits: of one body and of all together.
        n_bytes: what is there now, or was promised room.
    """

    limits: Limits
    n_bytes: int = 0

    @contextlib.asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """The request's body.

        Raises:
            BodyTooLargeError: it is, or says that it will be.
            BodyTooSlowError: it has not arrived in time.
            CrowdedError: there is no room for it beside the others.
        """
        share = _Share(self)
        try:
            yield await _arrived(request, share)
        finally:
            self.n_bytes -= share.n_bytes


@dataclass(slots=True)
class _Share:
    """What one body has of the whole."""

    whole: Bodies
    n_bytes: int = 0

    def grow_to(self, n_bytes: int) -> None:
        """Makes room for a body of so many bytes, part of which may be there already."""
        limits, more = self.whole.limits, max(n_bytes - self.n_bytes, 0)
        if n_bytes > limits.body_bytes:
            raise BodyTooLargeError(
                f"the body is longer than {limits.body_bytes} bytes", param="body"
            )
        if self.whole.n_bytes + more > limits.bodies_bytes:
            raise CrowdedError("the router holds as many request bodies as it may; come back soon")
        self.n_bytes += more
        self.whole.n_bytes += more


async def _arrived(request: Request, share: _Share) -> bytes:
    """The whole body; an announced one has its room at once, so that what was begun gets done."""
    share.grow_to(request.length or 0)
    if request.body.complete:
        body = request.body.taken()
        share.grow_to(len(body))
        return body
    pieces, n_bytes, within_s = [], 0, share.whole.limits.body_s
    try:
        async with asyncio.timeout(within_s):
            while piece := await request.body.read():
                pieces.append(piece)
                n_bytes += len(piece)
                share.grow_to(n_bytes)
    except TimeoutError as error:
        raise BodyTooSlowError(
            f"the body did not arrive within {within_s:g} s", param="body"
        ) from error
    return b"".join(pieces)
