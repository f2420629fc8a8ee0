"""Remembers what would have been right for each role, reading by reading, and what is now.

Does not read engines or routers, and writes no number.
"""

from collections.abc import Mapping

from .core.api import HypicCluster, RoleName
from .core.desired import role
from .core.observed import Observed
from .core.roll import Roll
from .core.scaling import Bounds, Decision, Recommendation, decide, remembered
from .core.scaling.gauges import Reading
from .wakeups import Key

ASLEEP_PERIOD_S = 1.0
UNSCALED_PERIOD_S = 30.0


def period_s(cluster: HypicCluster, observed: Observed, *, scaled_s: float) -> float:
    """How often the cluster's engines and routers are to be read.

    Args:
        cluster: what its spec says.
        observed: what runs.
        scaled_s: how often they are where the operator scales engines that do not sleep.
    """
    spec = cluster.spec
    ours = [name for name, item in spec.roles.items() if item.scaling and item.scaling.ours]
    if not ours:
        return UNSCALED_PERIOD_S
    awake = all(role.replicas(cluster, name, observed) for name in ours)
    return scaled_s if awake else min(scaled_s, ASLEEP_PERIOD_S)


class Scaler:
    """What would have been right so far, in this process's memory only."""

    def __init__(self) -> None:
        self._memory: dict[tuple[Key, RoleName], tuple[Recommendation, ...]] = {}
        self._seen: dict[Key, float] = {}

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a cluster that is gone."""
        self._seen.pop(key, None)
        for known in [known for known in self._memory if known[0] == key]:
            del self._memory[known]

    def decisions(
        self,
        key: Key,
        cluster: HypicCluster,
        observed: Observed,
        where: Roll,
        readings: tuple[Reading, ...],
        *,
        probes: int,
    ) -> Mapping[RoleName, Decision]:
        """How many engines each role is to have that the operator scales; none before a reading.

        Args:
            key: the cluster's.
            cluster: what its spec says.
            observed: what runs.
            where: whether a revision is on its way.
            readings: the last one, and the one before.
            probes: requests of the operator's own that were under way.
        """
        if not readings:
            return {}
        now, *earlier = readings
        load = now.load(earlier[0] if earlier else None, probes=probes)
        is_new, self._seen[key] = self._seen.get(key) != now.at_s, now.at_s
        found: dict[RoleName, Decision] = {}
        for name, spec in cluster.spec.roles.items():
            if spec.scaling is None or not spec.scaling.ours:
                continue
            bounds, memory = Bounds.of(spec.scaling), self._memory.get((key, name), ())
            if is_new:
                memory = remembered(memory, bounds, load, now_s=now.at_s)
                self._memory[key, name] = memory
            found[name] = decide(
                bounds,
                load,
                memory,
                current=role.replicas(cluster, name, observed),
                ready=sum(pod.ready for pod in observed.of_component(name)),
                rolling=not where.complete and bool(where.keep),
                now_s=now.at_s,
            )
        return found
