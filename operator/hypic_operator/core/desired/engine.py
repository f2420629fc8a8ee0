"""The engines' StatefulSet of one role and revision, their headless Service and disruption budget.

Does not know other revisions; `plan` decides which of them stay.
"""

from typing import Any

from .. import difference, names
from ..api import HypicCluster, RoleName
from ..difference import Manifest
from ..observed import Observed
from ..refusals import Policy
from . import pod, weights
from .container import container, joined, ports

_NUMBERS = {"replicas", "scaling"}


def revision(cluster: HypicCluster) -> str:
    """Digits that stand for everything in the spec that changes what the engines do.

    All roles share one, so that prefill meets only decode of its own revision. Only what differs
    from the defaults counts, and nothing that the operator decides: a later operator, with more
    fields and other templates, gives the same spec the same revision.
    """
    inputs = cluster.spec.model_dump(
        by_alias=False,
        mode="json",
        exclude_defaults=True,
        include={"model", "model_cache", "pic"},
        exclude={"model": {"source": {"hugging_face": {"token_secret_ref"}}}},
    )
    roles = {
        name: role.model_dump(exclude=_NUMBERS, exclude_defaults=True, mode="json")
        for name, role in cluster.spec.roles.items()
    }
    return difference.fingerprint({**inputs, **roles})[: names.REVISION_DIGITS]


def image(cluster: HypicCluster, name: RoleName, policy: Policy, observed: Observed) -> str:
    """Image of a role's engines: the user's, else what this revision runs, else the default.

    So an operator with another default leaves running engines alone.
    """
    wanted = names.engine_set(cluster, name, revision(cluster))
    running = (item.image for item in observed.sets() if item.name == wanted)
    given = cluster.spec.roles[name].template.engine.image
    return given or next(running, "") or policy.engine_image


def service(cluster: HypicCluster, name: RoleName) -> Manifest:
    """Stable names for a role's engines, ready or not."""
    listed = ports(cluster, name, "port")
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names.metadata(cluster, names.engines(cluster, name), name),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": names.selector(cluster, name),
            "ports": [{**port, "targetPort": port["name"]} for port in listed],
        },
    }


def stateful_set(
    cluster: HypicCluster, name: RoleName, policy: Policy, *, image: str, replicas: int
) -> Manifest:
    """A role's engines of the revision that the spec asks for."""
    digits = revision(cluster)
    ours = {names.LABEL_ROLE: names.role_label(cluster, name), names.LABEL_REVISION: digits}
    metadata = names.metadata(cluster, names.engine_set(cluster, name, digits), name)
    template = cluster.spec.roles[name].template
    labels = {**names.labels(cluster, name), **ours}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {**metadata, "labels": {**metadata["labels"], **ours}},
        "spec": {
            "serviceName": names.engines(cluster, name),
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            # A change of behaviour is another set; whatever else changes waits for the next pod.
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": {**names.selector(cluster, name), **ours}},
            "template": {
                "metadata": pod.metadata(template, labels),
                "spec": _pod_spec(cluster, name, policy, image),
            },
        },
    }


def budget(cluster: HypicCluster, name: RoleName) -> Manifest:
    """How many of a role's engines may be taken away at once, over all revisions."""
    return pod.budget(cluster, names.engines(cluster, name), name)


def _pod_spec(cluster: HypicCluster, name: RoleName, policy: Policy, image: str) -> dict[str, Any]:
    template = cluster.spec.roles[name].template
    ours = [
        weights.volume(cluster),
        {"name": "tmp", "emptyDir": {}},
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
    ]
    made = container(cluster, name, policy, image)
    downloads = weights.downloads(cluster, made)
    optional = {
        **pod.scheduling(template, names.selector(cluster, name)),
        "runtimeClassName": template.runtime_class_name,
        "resourceClaims": list(template.resource_claims),
        "initContainers": downloads,
    }
    return {
        "serviceAccountName": names.engine_account(cluster),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # Else the engine is process 1, to which a request to stop is nothing while it still loads.
        "shareProcessNamespace": True,
        "terminationGracePeriodSeconds": pod.grace_s(cluster),
        "securityContext": weights.security(cluster),
        "containers": [made],
        "volumes": joined(ours, template.volumes, "name"),
        **{field: value for field, value in optional.items() if value},
    }
