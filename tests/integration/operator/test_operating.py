"""The operator on a real API server; the test plays controllers, scheduler and kubelets."""

import kopf
import pytest

from hypic_operator.core.serving import Answer

from ...support import resources
from ...support.controllers import Controllers
from ...support.playing import LABEL, Namespace, PlayedProber
from ...support.waiting import eventually
from .conftest import Operating

TWO = {"replicas": 2}
NO_TOKEN = Answer(token=False, reason="RequestFailed", message="got status 503")
TOKEN = Answer(token=True, reason="TokenReceived", message="got one")


def test_a_cluster_gets_its_children_and_becomes_ready(
    namespace: Namespace, operating: Operating
) -> None:
    with operating():
        own = namespace.create(resources.manifest(prefill=TWO))
        namespace.bring_up("demo")
        children = namespace.children("demo")
    assert sorted(child["kind"] for child in children) == [
        "Deployment",
        "HypicRole",
        "NetworkPolicy",
        "NetworkPolicy",
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


def test_a_ready_cluster_says_where_and_what_it_serves(
    namespace: Namespace, operating: Operating
) -> None:
    with operating():
        namespace.create(resources.manifest(prefill=TWO))
        made = namespace.bring_up("demo")
    status = (namespace.get("HypicCluster", "demo") or {})["status"]
    revision = made["metadata"]["labels"]["serving.hypic.dev/revision"]
    prefill = {"desired": 2, "ready": 2, "summary": "2/2", "revision": revision}
    assert status["prefill"] == prefill
    assert status["url"] == f"http://demo.{namespace.name}.svc:80"
    assert status["observedGeneration"] == 1


def test_at_rest_nothing_is_written(namespace: Namespace, operating: Operating) -> None:
    with operating() as operator:
        namespace.create(resources.manifest(prefill=TWO))
        namespace.bring_up("demo")
        operator.rest(namespace, "demo")
        written, versions = operator.writes, namespace.versions("demo")
        operator.look(namespace, "demo")
        assert operator.writes == written
        after = namespace.versions("demo")
    del versions["HypicCluster/demo"], after["HypicCluster/demo"]  # touched by the test
    assert after == versions


def test_a_restart_of_the_operator_changes_nothing(
    namespace: Namespace, operating: Operating, prober: PlayedProber
) -> None:
    with operating():
        namespace.create(resources.manifest(prefill=TWO))
        namespace.bring_up("demo")
    versions, asked = namespace.versions_of_children("demo"), prober.asked
    with operating() as operator:
        eventually(lambda: prober.asked, until=lambda seen: seen > asked)
        operator.look(namespace, "demo")
        assert operator.writes == {}
    assert namespace.versions_of_children("demo") == versions


def test_nothing_of_the_framework_is_written_into_the_resource(
    namespace: Namespace, operating: Operating
) -> None:
    with operating():
        namespace.create(resources.manifest())
        namespace.bring_up("demo")
    metadata = (namespace.get("HypicCluster", "demo") or {})["metadata"]
    assert "finalizers" not in metadata
    assert "annotations" not in metadata
    assert not list(kopf.get_default_registry()._watching.get_all_handlers())


def test_pods_of_both_kinds_are_admitted_under_the_restricted_standard(
    namespace: Namespace, operating: Operating
) -> None:
    with operating():
        namespace.create(resources.manifest())
        (made,) = eventually(lambda: namespace.sets("demo"))
        front = eventually(lambda: namespace.get("Deployment", "demo"))
    for number, item in enumerate((made, front)):
        template = item["spec"]["template"]
        metadata = {**template["metadata"], "name": f"tried-{number}"}
        namespace.create({"kind": "Pod", "metadata": metadata, "spec": template["spec"]})
        rough = {**template["spec"], "hostNetwork": True}
        body = {"metadata": {"name": "rough"}, "spec": rough}
        status, answer = namespace.server.request("POST", namespace.path("Pod"), body)
        assert status == 403
        assert "restricted" in answer["message"]


def test_a_large_template_is_carried(namespace: Namespace, operating: Operating) -> None:
    env = [{"name": f"NOTE_{n:04d}", "value": "tide" * 24} for n in range(1600)]
    with operating():
        template = {"engine": {"env": env}}
        namespace.create(resources.manifest(prefill={"template": template}))
        made = namespace.bring_up("demo")
    for item in (made, namespace.get("HypicCluster", "demo") or {}):
        annotations = item["metadata"].get("annotations", {}).values()
        assert sum(len(text) for text in annotations) < 1000


def test_a_new_revision_grows_beside_the_old_one_and_then_replaces_it(
    namespace: Namespace, operating: Operating
) -> None:
    with operating():
        namespace.create(resources.manifest(prefill=TWO))
        old = namespace.bring_up("demo")["metadata"]["name"]
        namespace.patch("HypicCluster", "demo", {"spec": {"pic": {"seam": "16"}}})
        sets = eventually(lambda: namespace.sets("demo"), until=lambda seen: len(seen) == 2)
        (new,) = (item for item in sets if item["metadata"]["name"] != old)
        assert new["spec"]["replicas"] == 1
        namespace.play_pods(new, resources.loading())
        namespace.until("demo", "Progressing", "True", "Starting")
        assert (namespace.get("StatefulSet", old) or {})["spec"]["replicas"] == 2
        with Controllers(namespace):
            eventually(lambda: namespace.get("StatefulSet", old) is None)
            namespace.until("demo", "Progressing", "False", "Settled")
            namespace.until("demo", "Ready", "True")
        (left,) = namespace.sets("demo")
        assert left["metadata"]["name"] == new["metadata"]["name"]
        assert left["spec"]["replicas"] == 2


def test_a_bad_revision_leaves_the_good_one_serving_until_the_spec_is_taken_back(
    namespace: Namespace, operating: Operating
) -> None:
    bad = {"spec": {"prefill": {"template": {"engine": {"image": "nowhere/engine:2"}}}}}
    with operating():
        namespace.create(resources.manifest())
        old = namespace.bring_up("demo")["metadata"]["name"]
        namespace.patch("HypicCluster", "demo", bad)
        sets = eventually(lambda: namespace.sets("demo"), until=lambda seen: len(seen) == 2)
        (new,) = (item for item in sets if item["metadata"]["name"] != old)
        namespace.play_pods(new, resources.waiting("ImagePullBackOff", "not found"))
        found = namespace.until("demo", "Ready", "False", "ImagePullBackOff")
        assert "still serves, 1 ready" in found["message"]
        assert namespace.condition("demo", "Serving")["status"] == "True"
        assert (namespace.get("StatefulSet", old) or {})["spec"]["replicas"] == 1
        good = {"spec": {"prefill": {"template": {"engine": {"image": None}}}}}
        namespace.patch("HypicCluster", "demo", good)
        namespace.until("demo", "Ready", "True")
        eventually(
            lambda: (namespace.get("StatefulSet", new["metadata"]["name"]) or {})["spec"],
            until=lambda seen: seen["replicas"] == 0,
        )


def test_a_folder_of_the_node_needs_the_operators_flag(
    namespace: Namespace, operating: Operating
) -> None:
    model = {"name": "tiny", "source": {"hostPath": {"path": "/models"}}}
    with operating():
        namespace.create(resources.manifest(model=model))
        found = namespace.until("demo", "ModelReady", "False", "HostPathNotAllowed")
    assert "--allow-host-path" in found["message"]


def test_our_fields_are_put_back_and_those_of_others_stay_dynamo_4420(
    namespace: Namespace, operating: Operating
) -> None:
    with operating() as operator:
        namespace.create(resources.manifest())
        made = namespace.bring_up("demo")["metadata"]["name"]
        foreign = {"metadata": {"annotations": {"others": "note"}, "labels": {"team": "search"}}}
        namespace.patch("Service", "demo", foreign)
        namespace.patch("StatefulSet", made, {"spec": {"replicas": 7}})
        rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
        namespace.patch("Role", "demo-router", {"rules": rules})
        namespace.delete("PodDisruptionBudget", "demo-router")
        eventually(lambda: (namespace.get("StatefulSet", made) or {})["spec"]["replicas"] == 1)
        eventually(lambda: (namespace.get("Role", "demo-router") or {})["rules"] != rules)
        eventually(lambda: namespace.get("PodDisruptionBudget", "demo-router"))
        operator.rest(namespace, "demo")
    metadata = (namespace.get("Service", "demo") or {})["metadata"]
    assert metadata["annotations"]["others"] == "note"
    assert metadata["labels"]["team"] == "search"


def test_an_object_of_somebody_else_is_left_alone(
    namespace: Namespace, operating: Operating
) -> None:
    port = {"port": 1234, "protocol": "TCP"}
    service = {"kind": "Service", "metadata": {"name": "demo"}, "spec": {"ports": [port]}}
    with operating():
        namespace.create(service)
        namespace.create(resources.manifest())
        found = namespace.until("demo", "RouterReady", "False", "NameTaken")
        assert "Service demo" in found["message"]
        assert (namespace.get("Service", "demo") or {})["spec"]["ports"][0]["port"] == 1234
        namespace.delete("Service", "demo")
        namespace.bring_up("demo")


def test_serving_is_what_the_front_door_answers_llmkube_1624(
    namespace: Namespace, operating: Operating, prober: PlayedProber
) -> None:
    prober.answer = NO_TOKEN
    with operating(probe_period_s=0.5):
        namespace.create(resources.manifest())
        (made,) = eventually(lambda: namespace.sets("demo"))
        eventually(lambda: namespace.get("Deployment", "demo"))
        namespace.play_pods(made, resources.READY)
        namespace.play_router("demo", ready=2)
        found = namespace.until("demo", "Serving", "False", "RequestFailed")
        assert "got status 503" in found["message"]
        namespace.until("demo", "Ready", "False", "RequestFailed")
        prober.answer = TOKEN
        namespace.until("demo", "Ready", "True")
        prober.answer = NO_TOKEN
        namespace.until("demo", "Ready", "False", "RequestFailed")


def test_an_event_is_told_once_for_each_change(namespace: Namespace, operating: Operating) -> None:
    with operating() as operator:
        namespace.create(resources.manifest())
        namespace.bring_up("demo")
        for _ in range(3):
            operator.look(namespace, "demo")
    told = [event["reason"] for event in namespace.listed("Event")]
    assert sorted(told) == ["NotAsked", "RevisionStarted", "Serving", "Starting"]


def test_a_cluster_is_deleted_without_the_operator_aicr_406(
    namespace: Namespace, operating: Operating
) -> None:
    with operating():
        namespace.create(resources.manifest())
        namespace.bring_up("demo")
    namespace.delete("HypicCluster", "demo")
    assert namespace.get("HypicCluster", "demo") is None
    left = namespace.versions_of_children("demo")
    with operating() as operator:
        eventually(lambda: operator.looks)
        assert operator.writes == {}
    assert namespace.versions_of_children("demo") == left


def test_foreground_deletion_makes_nothing_anew_dynamo_8204(
    namespace: Namespace, operating: Operating
) -> None:
    with operating() as operator:
        namespace.create(resources.manifest())
        namespace.bring_up("demo")
        operator.rest(namespace, "demo")  # a look that began before would not know of it
        namespace.delete("HypicCluster", "demo", propagation="Foreground")
        namespace.delete("Service", "demo")
        namespace.delete("Deployment", "demo")
        operator.look(namespace, "demo")
        assert namespace.get("Service", "demo") is None
        assert namespace.get("Deployment", "demo") is None


@pytest.mark.parametrize(
    "names",
    [
        (
            "retrieval-assistant-for-the-northern-harbour-authority-eu-one",
            "retrieval-assistant-for-the-northern-harbour-authority-eu-two",
        ),
        ("qwen3.5-35b.v2", "qwen3-5-35b-v2"),
        ("7b", "hypic-7b"),
    ],
)
def test_names_that_are_alike_long_or_dotted_get_children_of_their_own(
    namespace: Namespace, operating: Operating, names: tuple[str, str]
) -> None:
    with operating():
        for name in names:
            namespace.create(resources.manifest(name))
        for name in names:
            (made,) = eventually(lambda name=name: namespace.sets(name))
            namespace.play_pods(made, resources.READY)
            namespace.until(name, "PrefillReady", "True")
    found = [namespace.children(name) for name in names]
    assert len(found[0]) == len(found[1]) == 13
    for child in (*found[0], *found[1], *namespace.listed("Pod", LABEL)):
        labels = child["metadata"]["labels"].values()
        assert all(len(text) <= 63 for text in (child["metadata"]["name"], *labels))
