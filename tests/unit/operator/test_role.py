from typing import Any

from hypic_operator.core import names
from hypic_operator.core.api import HypicCluster
from hypic_operator.core.desired import role
from hypic_operator.core.difference import settled, signed
from hypic_operator.core.observed import Observed

from ...support import resources


def _observed(cluster: HypicCluster, replicas: int | None = None) -> tuple[Observed, Any]:
    """What runs for a cluster, its HypicRole scaled by somebody."""
    children, pods = resources.snapshot(cluster)
    (made,) = (child for child in children if child["kind"] == names.ROLE_KIND)
    if replicas is not None:
        made["spec"]["replicas"] = replicas
    return Observed.of(cluster, children, pods), made


def _asked(replicas: int) -> HypicCluster:
    return resources.cluster(prefill={"replicas": replicas})


def test_the_clusters_number_is_the_first_one() -> None:
    assert role.replicas(_asked(3), "prefill", Observed()) == 3


def test_the_number_that_a_scaler_sets_counts_and_is_no_edit() -> None:
    observed, live = _observed(_asked(3), replicas=5)
    assert role.replicas(_asked(3), "prefill", observed) == 5
    assert settled(live, signed(role.manifest(_asked(3), "prefill", observed)))


def test_a_change_of_the_clusters_number_counts_again() -> None:
    observed, live = _observed(_asked(3), replicas=5)
    assert role.replicas(_asked(4), "prefill", observed) == 4
    assert not settled(live, signed(role.manifest(_asked(4), "prefill", observed)))


def test_a_role_of_another_cluster_says_nothing() -> None:
    observed, live = _observed(_asked(3), replicas=5)
    live["metadata"]["ownerReferences"][0]["uid"] = "of-another"
    observed = Observed.of(_asked(3), [live], [])
    assert role.replicas(_asked(3), "prefill", observed) == 3


def test_the_set_follows_the_role() -> None:
    observed, _ = _observed(_asked(3), replicas=5)
    wanted = resources.children(_asked(3), observed)
    (made,) = (item for item in wanted if item["kind"] == "StatefulSet")
    assert made["spec"]["replicas"] == 5


def test_the_status_counts_engines_and_names_them_for_autoscalers() -> None:
    children, pods = resources.snapshot(_asked(3))
    pods[0]["status"] = resources.loading()
    assert role.status(_asked(3), "prefill", Observed.of(_asked(3), children, pods)) == {
        "replicas": 3,
        "readyReplicas": 2,
        "selector": "serving.hypic.dev/cluster=demo,app.kubernetes.io/component=prefill",
    }


def test_a_role_that_is_scaled_by_others_keeps_their_number_within_its_bounds() -> None:
    def scaled(replicas: int, **bounds: int) -> HypicCluster:
        return resources.cluster(prefill={"replicas": replicas, "scaling": bounds})

    observed, _ = _observed(_asked(3), replicas=5)
    assert role.replicas(scaled(4, max=9), "prefill", observed) == 5
    assert role.replicas(scaled(3, max=4), "prefill", observed) == 4
    assert role.replicas(scaled(3, min=7, max=9), "prefill", observed) == 7
    assert role.replicas(scaled(3, max=2), "prefill", Observed()) == 2


def test_giving_up_scaling_changes_no_number() -> None:
    scaled = resources.cluster(prefill={"replicas": 4, "scaling": {"max": 9}})
    observed, _ = _observed(scaled, replicas=6)
    assert role.replicas(_asked(4), "prefill", observed) == 6
