"""Of several operators one acts: the one that holds the Lease."""

from hypic_operator.errors import LeadershipLostError

from ...support import resources
from ...support.playing import MERGE, Namespace
from ...support.waiting import eventually
from .conftest import Operating


def _lease(namespace: Namespace) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace.name}/leases/op"


def _holder(namespace: Namespace) -> str:
    status, found = namespace.server.request("GET", _lease(namespace))
    return str(found["spec"].get("holderIdentity", "")) if status == 200 else ""


def _revisions(namespace: Namespace) -> set[str]:
    return {item["metadata"]["name"] for item in namespace.sets("demo")}


def _seam(namespace: Namespace, seam: str) -> None:
    namespace.patch("HypicCluster", "demo", {"spec": {"pic": {"seam": seam}}})


def test_of_two_operators_one_acts_and_the_other_takes_over_when_it_ends_kubeai_67(
    namespace: Namespace, operating: Operating
) -> None:
    lease = f"{namespace.name}/op"
    namespace.create(resources.manifest())
    with operating(lease=lease) as first, operating(lease=lease) as second:
        eventually(lambda: namespace.sets("demo"))
        acts, waits = (first, second) if first.writes else (second, first)
        holder = _holder(namespace)
        assert holder
        _seam(namespace, "16")
        eventually(lambda: _revisions(namespace), until=lambda seen: len(seen) == 1)
        assert waits.writes == {}
        acts.end()
        eventually(lambda: _holder(namespace), until=lambda seen: seen not in {"", holder})
        before = _revisions(namespace)
        _seam(namespace, "32")
        eventually(lambda: _revisions(namespace) - before)
        assert waits.writes
    assert _holder(namespace) == ""


def test_an_operator_whose_lease_another_one_took_acts_no_more_kserve_491(
    namespace: Namespace, operating: Operating
) -> None:
    namespace.create(resources.manifest())
    running = operating(lease=f"{namespace.name}/op").__enter__()
    eventually(lambda: namespace.sets("demo"))
    other = {"spec": {"holderIdentity": "other"}}
    status, _ = namespace.server.request("PATCH", _lease(namespace), other, content_type=MERGE)
    assert status == 200
    eventually(lambda: running.ended)
    written, sets = running.writes, _revisions(namespace)
    _seam(namespace, "16")
    assert isinstance(running.failure, LeadershipLostError)
    assert (running.writes, _revisions(namespace)) == (written, sets)
    assert _holder(namespace) == "other"
