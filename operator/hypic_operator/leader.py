"""Only the operator that holds a Lease acts; another one takes it over when it is not renewed.

Does not know what is done meanwhile.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from .connection import MERGE, Connection, done
from .core import lease
from .errors import ClusterError, LeadershipLostError

logger = logging.getLogger(__name__)

_GROUP = "coordination.k8s.io/v1"


class Leader:
    """One candidate for one Lease.

    Args:
        connection: how the API server is reached.
        namespace: where the Lease is.
        name: the Lease's.
        identity: who this is; whoever has the same shares the Lease.
        duration_s: how long it is the holder's without a renewal.
    """

    def __init__(
        self,
        connection: Connection,
        namespace: str,
        name: str,
        identity: str,
        *,
        duration_s: float = lease.DURATION_S,
    ) -> None:
        self._duration_s = duration_s
        self._connection = connection
        self._folder = f"/apis/{_GROUP}/namespaces/{namespace}/leases"
        self._name = name
        self._identity = identity
        self._seen: lease.Seen | None = None

    async def acquire(self, stop: asyncio.Event) -> bool:
        """Wait until the Lease is ours; returns False when told to stop before that."""
        told = False
        while not stop.is_set():
            if await self.took():
                logger.info("Holds Lease %s as %s", self._name, self._identity)
                return True
            if not told:
                logger.info("Stands by: another operator holds Lease %s", self._name)
            told = True
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), lease.RENEW_EVERY_S)
        return False

    async def keep(self) -> None:
        """Renew the Lease; returns when another one has it, or when that failed for too long."""
        renewed_s = time.monotonic()
        while self.holds and time.monotonic() - renewed_s < lease.RENEW_WITHIN_S:
            await asyncio.sleep(lease.RENEW_EVERY_S)
            asked_s = time.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(renewed_s + lease.RENEW_WITHIN_S - asked_s):
                    if await self.took():
                        renewed_s = asked_s
        logger.error("Lost Lease %s: it could not be renewed", self._name)

    async def release(self) -> None:
        """Leave the Lease to another one at once."""
        if self._seen is not None and self.holds:
            with suppress(ClusterError):
                await self._write(self._seen, holder="")

    async def read(self) -> lease.Seen | None:
        """The Lease as it is now; None where there is none.

        Raises:
            RefusedError: it may not be read.
            UnavailableError: try again.
        """
        status, body = await self._connection.answer("GET", f"{self._folder}/{self._name}")
        if status == HTTPStatus.NOT_FOUND:
            return None
        self._seen = lease.seen(self._seen, _seen(done(status, body)))
        return self._seen

    @property
    def holder(self) -> str:
        """Who had it when it was last read; empty for nobody."""
        return "" if self._seen is None else self._seen.holder

    @property
    def holds(self) -> bool:
        """Whether that was us."""
        return self.holder == self._identity != ""

    async def took(self) -> bool:
        """Take or renew the Lease if it may be; whatever goes wrong is tried again later."""
        try:
            return await self.take()
        except ClusterError as error:
            logger.warning("Lease %s: %s", self._name, error)
            return False

    async def take(self) -> bool:
        """Take or renew the Lease if it may be; returns whether it is ours.

        Raises:
            RefusedError: it may not be read or written.
            UnavailableError: try again.
        """
        found = await self.read()
        if found is None:
            return await self._create()
        if not lease.may_take(found, identity=self._identity, now_s=time.monotonic()):
            return False
        return await self._write(found, holder=self._identity)

    async def _create(self) -> bool:
        body = {"metadata": {"name": self._name}, "spec": self._spec(self._identity)}
        status, answer = await self._connection.answer("POST", self._folder, body)
        return self._wrote(status, answer)

    async def _write(self, found: lease.Seen, *, holder: str) -> bool:
        # With the version, a renewal by another one that was not seen yet is not overwritten.
        body: dict[str, Any] = {"metadata": {"resourceVersion": found.version}}
        body["spec"] = self._spec(holder)
        if found.holder == holder:
            del body["spec"]["acquireTime"]
        path = f"{self._folder}/{self._name}"
        return self._wrote(*await self._connection.answer("PATCH", path, body, content_type=MERGE))

    def _wrote(self, status: int, answer: Any) -> bool:
        if status == HTTPStatus.CONFLICT:
            return False
        self._seen = _seen(done(status, answer))
        return True

    def _spec(self, holder: str) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        return {
            "holderIdentity": holder,
            "leaseDurationSeconds": int(self._duration_s),
            "acquireTime": now,
            "renewTime": now,
        }


@asynccontextmanager
async def leading(
    leader: Leader | None, stop: asyncio.Event, lost: Callable[[], Awaitable[None]]
) -> AsyncIterator[bool]:
    """Lead while the block runs, without a candidate always.

    Args:
        leader: the candidate.
        stop: ends the waiting; set when the lead is lost.
        lost: called at once when the lead is lost, before another one can have it.

    Yields:
        False when told to stop before it could lead.

    Raises:
        LeadershipLostError: at the end of a block in which the lead was lost.
    """
    if leader is None:
        yield True
        return
    if not await leader.acquire(stop):
        yield False
        return
    keeping = asyncio.create_task(_keep(leader, stop, lost))
    try:
        yield True
    finally:
        ended = keeping.done()
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        if not ended:
            await leader.release()
    if ended:
        raise LeadershipLostError


async def _keep(leader: Leader, stop: asyncio.Event, lost: Callable[[], Awaitable[None]]) -> None:
    await leader.keep()
    await lost()
    stop.set()


def _seen(body: Any) -> lease.Seen:
    spec = body.get("spec", {})
    return lease.Seen(
        version=body["metadata"]["resourceVersion"],
        holder=spec.get("holderIdentity") or "",
        duration_s=float(spec.get("leaseDurationSeconds") or lease.DURATION_S),
        since_s=time.monotonic(),
    )
