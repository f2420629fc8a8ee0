"""From a HypicCluster to the objects that are made for it, one module a group of objects.

Decides nothing about when they are applied; `plan` does.
"""

from collections.abc import Iterator, Sequence

from ..api import HypicCluster, RoleName
from ..difference import Manifest
from ..observed import Observed
from ..refusals import Policy
from . import access, engine, entrance, monitors, network, role, router, scaler

# A binding is refused without its role, and pods need everything else.
_STAGES = {"RoleBinding": 1, "StatefulSet": 2, "Deployment": 2}


def children(cluster: HypicCluster, policy: Policy, observed: Observed) -> tuple[Manifest, ...]:
    """Everything that is to exist, in the order it is made; revisions that go are not in it.

    Args:
        cluster: what the user asks for.
        policy: what the operator was started with.
        observed: what runs; numbers that scalers have set and images that run already are kept.
    """
    engines = (
        part for name in cluster.spec.roles for part in _engines(cluster, name, policy, observed)
    )
    return (
        *access.children(cluster),
        *network.children(cluster, policy),
        router.service(cluster),
        *engines,
        router.deployment(cluster, policy),
        router.budget(cluster),
        *entrance.children(cluster),
        *monitors.children(cluster, observed),
    )


def stages(manifests: Sequence[Manifest]) -> tuple[tuple[Manifest, ...], ...]:
    """The manifests in parts, each to be written at once when the parts before it are there."""
    numbered = [(_STAGES.get(item["kind"], 0), item) for item in manifests]
    return tuple(
        tuple(item for number, item in numbered if number == stage)
        for stage in sorted({number for number, _ in numbered})
    )


def _engines(
    cluster: HypicCluster, name: RoleName, policy: Policy, observed: Observed
) -> Iterator[Manifest]:
    yield role.manifest(cluster, name, observed)
    yield engine.service(cluster, name)
    yield engine.stateful_set(
        cluster,
        name,
        policy,
        image=engine.image(cluster, name, policy, observed),
        replicas=role.replicas(cluster, name, observed),
    )
    yield engine.budget(cluster, name)
    yield from scaler.autoscalers(cluster, name)
