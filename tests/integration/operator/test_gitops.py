"""What people and GitOps controllers apply stays theirs, however large, and shows no difference."""

import copy
import json
from typing import Any

from ...support import helm, resources
from ...support.controllers import Controllers
from ...support.playing import Namespace
from ...support.waiting import eventually
from .conftest import Operating

APPLY = "application/apply-patch+yaml"
GIT = "fieldManager=argocd-controller"


def _apply(namespace: Namespace, body: Any, *, dry: bool = False, force: bool = False) -> Any:
    query = GIT + ("&dryRun=All" if dry else "") + ("&force=true" if force else "")
    path = namespace.path("HypicCluster", body["metadata"]["name"], query=query)
    status, answer = namespace.server.request("PATCH", path, body, content_type=APPLY)
    assert status in {200, 201}, answer
    return answer


def _ready(namespace: Namespace, cluster: str) -> bool:
    return bool(namespace.condition(cluster, "Ready").get("status") == "True")


def _without_bookkeeping(item: Any) -> Any:
    found = copy.deepcopy(item)
    for field in ("managedFields", "resourceVersion"):
        del found["metadata"][field]
    return found


def test_what_git_holds_shows_no_difference_and_no_conflict_once_all_is_settled(
    namespace: Namespace, operating: Operating
) -> None:
    files = helm.ROOT / "charts" / "hypic-cluster" / "ci" / "every-value-values.yaml"
    body = helm.render("hypic-cluster", files).one("HypicCluster")
    body["metadata"]["namespace"] = namespace.name
    with operating() as operator, Controllers(namespace):
        _apply(namespace, body)
        namespace.until("every-value", "Ready", "True")
        operator.rest(namespace, "every-value")
        live = namespace.get("HypicCluster", "every-value")
        assert _without_bookkeeping(_apply(namespace, body, dry=True)) == _without_bookkeeping(live)


def test_an_environment_of_200_kb_is_carried_and_then_nothing_is_written(
    namespace: Namespace, operating: Operating
) -> None:
    env = [{"name": f"NOTE_{n:04d}", "value": "tide" * 24} for n in range(1600)]
    template = {"engine": {"env": env}}
    body = resources.manifest("wide", prefill={"template": template})
    assert len(json.dumps(body)) > 200_000
    with operating() as operator, Controllers(namespace, period_s=1.0):
        _apply(namespace, body)
        eventually(lambda: _ready(namespace, "wide"), within_s=90)
        operator.rest(namespace, "wide")
        written = operator.writes
        operator.look(namespace, "wide")
        assert operator.writes == written
    for item in (namespace.get("HypicCluster", "wide"), *namespace.children("wide")):
        assert item is not None
        assert len(json.dumps(item["metadata"].get("annotations", {}))) < 1000


def test_a_note_of_others_on_a_child_stays(namespace: Namespace, operating: Operating) -> None:
    note = {"team.example.test/note": "kept"}
    with operating() as operator, Controllers(namespace):
        namespace.create(resources.manifest())
        namespace.until("demo", "Ready", "True")
        (made,) = namespace.sets("demo")
        name = made["metadata"]["name"]
        namespace.patch("StatefulSet", name, {"metadata": {"annotations": note}})
        # Something of ours changes as well, so that the set is written again.
        namespace.patch("HypicCluster", "demo", {"spec": {"drain": {"timeoutSeconds": 61}}})
        grace = 91
        eventually(
            lambda: namespace.sets("demo")[0]["spec"]["template"]["spec"],
            until=lambda spec: spec["terminationGracePeriodSeconds"] == grace,
        )
        operator.rest(namespace, "demo")
        (after,) = namespace.sets("demo")
    assert note.items() <= after["metadata"]["annotations"].items()


def test_long_and_dotted_names_of_pairs_run_side_by_side_with_names_that_fit(
    namespace: Namespace, operating: Operating
) -> None:
    base = "retrieval-assistant-for-the-northern-harbour-authority-eu"
    names = (f"{base}-one", f"{base}-two", "qwen3.5-35b.v2")
    with operating(), Controllers(namespace):
        for name in names:
            namespace.create(resources.manifest(name, decode={}))
        for name in names:
            namespace.until(name, "PrefillReady", "True")
            namespace.until(name, "DecodeReady", "True")
        children = {name: namespace.children(name) for name in names}
        pods = [pod for name in names for pod in namespace.listed("Pod", _of(name))]
    every = [
        (item["kind"], item["metadata"]["name"]) for made in children.values() for item in made
    ]
    assert len(set(every)) == len(every)
    assert all(
        len([c for c in made if c["kind"] == "StatefulSet"]) == 2 for made in children.values()
    )
    for item in (*pods, *(child for made in children.values() for child in made)):
        labels = item["metadata"]["labels"].values()
        assert max(len(text) for text in (item["metadata"]["name"], *labels)) <= 63


def _of(cluster: str) -> str:
    return f"serving.hypic.dev/cluster={cluster},serving.hypic.dev/revision"
