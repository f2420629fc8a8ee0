"""In which namespaces this operator acts, where several are installed in one cluster.

An operator for single namespaces holds a Lease in each of them; one for the whole cluster leaves a
namespace alone while such a Lease is renewed. Does not know what is done in a namespace.
"""

import asyncio
import logging
import time
from collections.abc import Sequence

from .connection import Connection
from .core import lease, names
from .errors import RefusedError, UnavailableError
from .leader import Leader

logger = logging.getLogger(__name__)

# Long enough for an upgrade, so that meanwhile nobody else changes what runs there.
_DURATION_S = 600.0
_RENEW_EVERY_S = 60.0
_TRY_EVERY_S = 2.0
# How old an answer about another operator's Lease may be.
_READ_EVERY_S = 2.0
# By then whoever acted before has read that this one holds the namespace.
_SETTLES_S = 2 * _READ_EVERY_S


class Everywhere:
    """An operator without a Lease of its own: whoever starts it so says where it acts."""

    def start(self) -> None:
        """Nothing to hold."""

    async def acts(self, _namespace: str) -> bool:
        """Whether it acts there."""
        return True

    async def close(self) -> None:
        """Nothing to leave."""


class Single(Everywhere):
    """An operator for single namespaces.

    Args:
        connection: how the API server is reached.
        namespaces: where it is to act.
        identity: the same for all operators of one installation, of which one leads.
    """

    def __init__(self, connection: Connection, namespaces: Sequence[str], identity: str) -> None:
        self._leases = {
            namespace: Leader(
                connection, namespace, names.SCOPE_LEASE, identity, duration_s=_DURATION_S
            )
            for namespace in namespaces
        }
        self._acts: set[str] = set()
        self._tried = {namespace: asyncio.Event() for namespace in namespaces}
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to hold its namespaces, if it does not yet."""
        if not self._tasks:
            held = self._leases.items()
            self._tasks = [asyncio.create_task(self._hold(*item)) for item in held]

    async def acts(self, namespace: str) -> bool:
        """Whether it acts there: as soon as nobody else does."""
        await self._tried[namespace].wait()
        return namespace in self._acts

    async def close(self) -> None:
        """Hold them no longer; they stay its own for the one who leads next."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _hold(self, namespace: str, leader: Leader) -> None:
        while True:
            try:
                await self._look(namespace, leader)
            except Exception:
                logger.exception("Lease in %s: a fault of the operator's", namespace)
            self._tried[namespace].set()
            acts = namespace in self._acts
            await asyncio.sleep(_RENEW_EVERY_S if acts else _TRY_EVERY_S)

    async def _look(self, namespace: str, leader: Leader) -> None:
        """Take or renew the Lease; without the right to it, act as if there were none."""
        before = leader.holder
        try:
            found = await leader.read()
            await leader.take()
        except RefusedError as error:
            logger.warning("Acts in %s, not knowing who else does: %s", namespace, error)
            self._acts.add(namespace)
            return
        except UnavailableError as error:
            logger.warning("Lease in %s: %s", namespace, error)
            return
        if not leader.holds:
            self._acts.discard(namespace)
            if leader.holder not in {"", before}:
                logger.warning("Leaves %s to the operator of %s", namespace, leader.holder)
            return
        if found is None or found.holder != leader.holder:
            self._tried[namespace].set()
            await asyncio.sleep(_SETTLES_S)
        self._acts.add(namespace)


class Rest(Everywhere):
    """An operator for the whole cluster: it acts where no other does.

    Args:
        connection: how the API server is reached.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._leases: dict[str, Leader] = {}
        self._read_s: dict[str, float] = {}
        self._free: dict[str, bool] = {}

    async def acts(self, namespace: str) -> bool:
        """Whether nobody else acts there."""
        now_s = time.monotonic()
        if now_s - self._read_s.get(namespace, float("-inf")) > _READ_EVERY_S:
            self._free[namespace] = await self._is_free(namespace)
            self._read_s[namespace] = now_s
        return self._free[namespace]

    async def _is_free(self, namespace: str) -> bool:
        made = Leader(self._connection, namespace, names.SCOPE_LEASE, "")
        try:
            found = await self._leases.setdefault(namespace, made).read()
        except RefusedError as error:
            logger.warning("Acts in %s, not knowing who else does: %s", namespace, error)
            return True
        free = found is None or lease.may_take(found, identity="", now_s=time.monotonic())
        if found is not None and free != self._free.get(namespace, True):
            said = "Acts in %s again" if free else "Leaves %s to the operator of %s"
            logger.info(said, *(namespace,) if free else (namespace, found.holder))
        return free


def of(connection: Connection, namespaces: Sequence[str], identity: str) -> Everywhere:
    """What fits an operator's settings.

    Args:
        connection: how the API server is reached.
        namespaces: where it works; empty for the whole cluster.
        identity: of its installation; empty where it has none.
    """
    if not namespaces:
        return Rest(connection)
    return Single(connection, namespaces, identity) if identity else Everywhere()
