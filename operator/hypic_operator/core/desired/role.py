"""The HypicRole of each role: the number that people, autoscalers and the operator agree on.

Does not say when pods come or go for it; `plan` does.
"""

from typing import Any

from .. import difference, names
from ..api import HypicCluster, RoleName
from ..difference import Manifest
from ..observed import Child, Observed


def child(cluster: HypicCluster, name: RoleName, observed: Observed) -> Child | None:
    """The HypicRole as it is; None when there is none that is ours and stays."""
    found = observed.child(names.ROLE_KIND, names.engines(cluster, name))
    return found if found is not None and found.owned and not found.leaving else None


def replicas(cluster: HypicCluster, name: RoleName, observed: Observed) -> int:
    """How many engines a role is to have.

    The HypicRole's own number, which `kubectl scale` and autoscalers set. The HypicCluster's number
    counts before there is a HypicRole, and again when it is changed itself, unless `scaling` gives
    the number away; then its bounds hold for everybody.
    """
    spec = cluster.spec.roles[name]
    live = child(cluster, name, observed)
    if live is None or (spec.scaling is None and _copied(live) != str(spec.replicas)):
        number = spec.replicas
    else:
        number = int(live.live["spec"]["replicas"])
    bounds = spec.scaling
    # None at all is for clusters whose spec says that their engines may sleep.
    return max(number, 1) if bounds is None else min(max(number, bounds.min), bounds.max)


def manifest(cluster: HypicCluster, name: RoleName, observed: Observed) -> Manifest:
    """The HypicRole; only what was copied is signed, so that a scaler's number is never an edit."""
    metadata = names.metadata(cluster, names.engines(cluster, name), name)
    copied = {names.ANNOTATION_COPIED: str(cluster.spec.roles[name].replicas)}
    body = difference.signed(
        {
            "apiVersion": names.API_VERSION,
            "kind": names.ROLE_KIND,
            "metadata": {**metadata, "annotations": copied},
        }
    )
    return {**body, "spec": {"replicas": replicas(cluster, name, observed)}}


def status(cluster: HypicCluster, name: RoleName, observed: Observed) -> dict[str, Any]:
    """What a HypicRole says of its engines, over all revisions."""
    engines = observed.of_component(name)
    selector = names.selector(cluster, name).items()
    return {
        "replicas": len(engines),
        "readyReplicas": sum(engine.ready for engine in engines),
        "selector": ",".join(f"{label}={value}" for label, value in selector),
    }


def _copied(role: Child) -> str | None:
    annotations = role.live["metadata"].get("annotations", {})
    found: str | None = annotations.get(names.ANNOTATION_COPIED)
    return found
