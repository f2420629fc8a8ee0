"""What is rendered: the whole against golden files, and the reasons behind single fields.

After a wanted change: ``python -m tests.unit.operator.test_desired`` writes the files anew; read
the difference before committing it, for a changed StatefulSet reaches every engine in time.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from hypic_operator.core import desired, names, serving
from hypic_operator.core.api import HypicCluster
from hypic_operator.core.desired import container, engine, router
from hypic_operator.core.difference import Manifest
from hypic_operator.core.observed import Observed
from hypic_operator.core.refusals import Policy

from ...support import resources
from ...support.pod_security import violations

GOLDEN = Path(__file__).parents[2] / "data" / "operator"
ENV = {"name": "engine-env", "persistentVolumeClaim": {"claimName": "engine-env", "readOnly": True}}
DEMO: dict[str, Any] = {
    "pic": {"minSegmentTokens": 8, "maxSegments": 64},
    "prefill": {
        "replicas": 2,
        "template": {
            "volumes": [ENV],
            "engine": {
                "image": "localhost/hypic/engine:2",
                "resources": {"requests": {"cpu": "250m"}, "limits": {"memory": "6Gi"}},
                "volumeMounts": [{"name": "engine-env", "mountPath": "/opt/env", "readOnly": True}],
                "extraArgs": ["--max-total-tokens", "16384"],
            },
        },
    },
    "drain": {"timeoutSeconds": 120},
}
FULL: dict[str, Any] = {
    "model": {"name": "Qwen/Qwen3.5", "source": {"hostPath": {"path": "/models/qwen"}}},
    "pic": {"mode": "transition", "separator": "-$(SEP)-", "seam": 0},
    "prefill": {
        "replicas": 4,
        "tensorParallel": 2,
        "template": {
            "labels": {"team": "search"},
            "annotations": {"note": "a"},
            "nodeSelector": {"gpu": "h200"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "affinity": {"nodeAffinity": {}},
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
            ],
            "priorityClassName": "high",
            "imagePullSecrets": [{"name": "registry"}],
            "runtimeClassName": "nvidia",
            "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}],
            "engine": {
                "imagePullPolicy": "Always",
                "env": [{"name": "HOME", "value": "/cache"}, {"name": "A", "value": "1"}],
            },
        },
    },
    "router": {"replicas": 1, "policy": "least_load", "apiKeysSecretRef": {"name": "clients"}},
}
PAIR: dict[str, Any] = {
    "model": {
        "name": "Qwen3.5",
        "source": {"huggingFace": {"repo": "Qwen/Qwen3.5", "tokenSecretRef": {"name": "hub"}}},
    },
    "modelCache": {"pvc": {"claimName": "hub-cache"}},
    "pic": {"memory": "30%"},
    "prefill": {
        "replicas": 2,
        "tensorParallel": 2,
        "scaling": {"min": 2, "max": 6, "metrics": [{"type": "Resource", "resource": {}}]},
    },
    "decode": {"tensorParallel": 4},
    "router": {"gateway": {"parentRefs": [{"name": "public"}]}},
    "monitoring": {"podMonitor": "Always"},
}
CASES: dict[str, dict[str, Any]] = {"smallest": {}, "demo": DEMO, "full": FULL, "pair": PAIR}


def rendered(case: str) -> str:
    cluster = resources.cluster("demo", namespace="ai", **CASES[case])
    children = desired.children(cluster, resources.POLICY, Observed())
    return yaml.safe_dump_all(json.loads(json.dumps(children)), sort_keys=True)


@pytest.mark.parametrize("case", CASES)
def test_the_children_are_those_of_the_golden_file(case: str) -> None:
    assert rendered(case) == (GOLDEN / f"{case}.yaml").read_text()


def test_routers_with_keys_know_the_operators_own_by_its_digest_and_no_manifest_holds_it() -> None:
    policy = replace(resources.POLICY, secret="s")
    cluster = resources.cluster(router={"apiKeysSecretRef": {"name": "clients"}})
    key = serving.front_key("s", "uid-1")
    text = json.dumps(desired.children(cluster, policy, Observed()))
    assert serving.digest(key) in text
    assert key not in text
    assert "clients" in text
    without = json.dumps(desired.children(resources.cluster(), policy, Observed()))
    assert "api-key" not in without


def test_the_revision_follows_what_engines_do_and_nothing_else() -> None:
    same = engine.revision(resources.cluster())
    unchanged: list[dict[str, Any]] = [
        {"prefill": {"replicas": 5}},
        {"router": {"replicas": 5, "policy": "round_robin"}},
        {"drain": {"timeoutSeconds": 5}},
        {"pic": {"seam": 8, "mode": "transition_rope_recompute"}},
        {"prefill": {"template": {"engine": {}}}},
    ]
    assert {engine.revision(resources.cluster(**spec)) for spec in unchanged} == {same}
    changed: list[dict[str, Any]] = [
        {"pic": {"seam": 16}},
        {"prefill": {"tensorParallel": 2}},
        {"prefill": {"template": {"engine": {"image": "e:2"}}}},
        {"prefill": {"template": {"nodeSelector": {"a": "b"}}}},
        {"model": {"name": "other", "source": {"pvc": {"claimName": "models"}}}},
    ]
    found = {engine.revision(resources.cluster(**spec)) for spec in changed}
    assert len(found) == len(changed)
    assert same not in found


def test_the_revision_of_this_release_is_that_of_the_first_one_llmkube_192() -> None:
    assert engine.revision(resources.cluster()) == "d71a2ff5"
    assert engine.revision(resources.cluster(**DEMO)) == "b315dec9"


def test_an_operator_with_another_default_image_leaves_running_engines_alone() -> None:
    cluster = resources.cluster()
    observed = Observed.of(cluster, *resources.snapshot(cluster))
    newer = Policy(router_image="r:2", engine_image="e:2")
    assert engine.image(cluster, "prefill", newer, observed) == resources.POLICY.engine_image
    assert engine.image(cluster, "prefill", newer, Observed()) == "e:2"
    named = resources.cluster(prefill={"template": {"engine": {"image": "mine"}}})
    assert engine.image(named, "prefill", newer, observed) == "mine"


def _set(cluster: HypicCluster) -> Manifest:
    return engine.stateful_set(cluster, "prefill", resources.POLICY, image="e", replicas=1)


def _container(made: Any) -> dict[str, Any]:
    container: dict[str, Any] = made["spec"]["template"]["spec"]["containers"][0]
    return container


def test_devices_follow_tensor_parallel_unless_resources_are_given_dynamo_10716() -> None:
    wide = resources.cluster(prefill={"tensorParallel": 4})
    made = _set(wide)
    assert _container(made)["resources"] == {"limits": {"nvidia.com/gpu": "4"}}
    bare = resources.cluster(prefill={"template": {"engine": {"resources": {}}}})
    assert _container(_set(bare))["resources"] == {}


def test_a_model_at_the_root_of_its_claim_needs_no_sub_path() -> None:
    model = {"name": "m", "source": {"pvc": {"claimName": "c"}}}
    made = _set(resources.cluster(model=model))
    assert _container(made)["volumeMounts"][0] == {
        "name": "model",
        "mountPath": "/models/m",
        "readOnly": True,
    }


def test_a_separator_reaches_the_process_as_it_is_written() -> None:
    cluster = resources.cluster(pic={"separator": "--$(HOME)$"})
    assert "--pic-separator-str=--$$(HOME)$$" in container.arguments(cluster, "prefill")
    assert "--separator=--$$(HOME)$$" in router.arguments(cluster, resources.POLICY)


@pytest.mark.parametrize("case", CASES)
def test_every_pod_meets_the_restricted_standard(case: str) -> None:
    for made in yaml.safe_load_all(rendered(case)):
        if made["kind"] not in {"StatefulSet", "Deployment"}:
            continue
        spec = made["spec"]["template"]["spec"]
        nodes = {"volume hostPath"} if "hostPath" in str(CASES[case]) else set()
        assert set(violations(spec)) == (nodes if made["kind"] == "StatefulSet" else set())
        for item in (*spec.get("initContainers", ()), *spec["containers"]):
            assert item["securityContext"]["readOnlyRootFilesystem"]


def test_one_number_sets_the_grace_period() -> None:
    cluster = resources.cluster(drain={"timeoutSeconds": 7})
    for made in (
        _set(cluster),
        router.deployment(cluster, resources.POLICY),
    ):
        assert made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 37


def test_a_budget_lets_a_single_pod_go() -> None:
    for made in (engine.budget(resources.cluster(), "prefill"), router.budget(resources.cluster())):
        assert made["spec"]["maxUnavailable"] == 1
        assert "minAvailable" not in made["spec"]


def test_routers_without_engines_stay_behind_their_service() -> None:
    made = router.deployment(resources.cluster(), resources.POLICY)
    assert _container(made)["readinessProbe"]["httpGet"] == {"path": "/accepting", "port": "http"}


def test_selectors_find_their_pods_and_no_others() -> None:
    cluster = resources.cluster()
    engines = _set(cluster)
    routers = router.deployment(cluster, resources.POLICY)
    engine_labels = engines["spec"]["template"]["metadata"]["labels"].items()
    router_labels = routers["spec"]["template"]["metadata"]["labels"].items()
    for selector in (
        names.selector(cluster, "prefill"),
        engines["spec"]["selector"]["matchLabels"],
    ):
        assert selector.items() <= engine_labels
        assert not selector.items() <= router_labels
    assert names.selector(cluster, "router").items() <= router_labels
    assert not names.selector(cluster, "router").items() <= engine_labels


def test_what_others_need_is_written_before_them() -> None:
    made = resources.children(resources.cluster(), Observed())
    first, binding, pods = desired.stages(made)
    assert {item["kind"] for item in binding} == {"RoleBinding"}
    assert {item["kind"] for item in pods} == {"StatefulSet", "Deployment"}
    assert {"Role", "ServiceAccount", "HypicRole"} <= {item["kind"] for item in first}
    assert len(first) + len(binding) + len(pods) == len(made)


def test_no_probe_kills_an_engine_that_loads_or_needs_a_program_aibrix_772_dynamo_3726() -> None:
    made = resources.children(resources.cluster(), Observed())
    (engines,) = (item for item in made if item["kind"] == "StatefulSet")
    (engine_container,) = engines["spec"]["template"]["spec"]["containers"]
    probes = {name: engine_container[name] for name in ("startupProbe", "livenessProbe")}
    # Until the startup probe has passed, the kubelet does not look at the other one.
    starting = probes["startupProbe"]
    assert starting["periodSeconds"] * starting["failureThreshold"] >= 3600
    assert probes["livenessProbe"]["httpGet"]["path"] == "/health"
    (routers,) = (item for item in made if item["kind"] == "Deployment")
    (router_container,) = routers["spec"]["template"]["spec"]["containers"]
    for held in (engine_container, router_container):
        told = [value for key, value in held.items() if key.endswith("Probe")]
        assert len(told) >= 2
        assert all("httpGet" in probe and "exec" not in probe for probe in told)


if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        (GOLDEN / f"{name}.yaml").write_text(rendered(name))
