"""From a HypicCluster to the objects that are made for it, one module a group of objects.

Decides nothing about when they are applied; `plan` does.
"""

from ..api import HypicCluster
from ..difference import Manifest
from ..refusals import Policy
from . import access, engine, router


def children(cluster: HypicCluster, policy: Policy, *, engine_image: str) -> tuple[Manifest, ...]:
    """Everything that is to exist, in the order it is made; revisions that go are not in it.

    Args:
        cluster: what the user asks for.
        policy: what the operator was started with.
        engine_image: image of the engines; see `engine.image`.
    """
    return (
        *access.children(cluster),
        engine.service(cluster),
        router.service(cluster),
        engine.stateful_set(cluster, policy, image=engine_image),
        router.deployment(cluster, policy),
        engine.budget(cluster),
        router.budget(cluster),
    )
