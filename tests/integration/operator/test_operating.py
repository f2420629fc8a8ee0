from ...support import resources
from ...support.playing import Namespace
from .conftest import Operating


def test_a_cluster_gets_its_children_and_becomes_ready(
    namespace: Namespace, operating: Operating
) -> None:
    with operating():
        own = namespace.create(resources.manifest(prefill={"replicas": 2}))
        namespace.bring_up("demo")
        children = namespace.children("demo")
    kinds = sorted(child["kind"] for child in children)
    assert kinds == [
        "Deployment",
        "PodDisruptionBudget",
        "PodDisruptionBudget",
        "Role",
        "RoleBinding",
        "Service",
        "Service",
        "ServiceAccount",
        "ServiceAccount",
        "StatefulSet",
    ]
    for child in children:
        (owner,) = child["metadata"]["ownerReferences"]
        assert owner["uid"] == own["metadata"]["uid"]
        assert owner["controller"]
        assert owner["blockOwnerDeletion"]
