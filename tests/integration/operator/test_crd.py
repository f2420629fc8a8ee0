"""The schema: each rule with a resource that it lets pass and one that it refuses."""

import copy
import re
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from ...support import apiserver, resources
from ...support.apiserver import ApiServer
from ...support.playing import Namespace
from .conftest import CRD


def _with(path: str, value: Any) -> dict[str, Any]:
    """The smallest resource, with one field changed; a value of None takes the field away."""
    body = copy.deepcopy(resources.manifest())
    *parents, field = path.split(".")
    place = body
    for parent in parents:
        place = place.setdefault(parent, {})
    if value is None:
        del place[field]
    else:
        place[field] = value
    return body


def _volume(**source: Any) -> list[dict[str, Any]]:
    return [{"name": "data", **source}]


TEMPLATE = "spec.prefill.template"
CLAIM = {"claimName": "c"}
HUB = {"huggingFace": {"repo": "a/b", "revision": "refs/pr/1", "tokenSecretRef": {"name": "t"}}}
IMAGE = {"image": {"reference": "registry.example.test/m@sha256:0", "path": "a/b"}}
GATEWAY = {"parentRefs": [{"name": "g", "namespace": "n"}], "hostnames": ["a.b"]}
METRIC = {"type": "Pods", "pods": {"metric": {"name": "m"}}}


def _cached(**cache: Any) -> dict[str, Any]:
    return {"model": {"name": "m", "source": HUB}, "modelCache": cache}


RULES = [
    ("metadata.name", "a" * 63, "a" * 64, "at most 63 characters"),
    ("metadata.name", "qwen3.5-35b.v2", "Qwen", "metadata.name"),
    ("spec.decode", {}, {"replicas": 0}, "spec.decode.replicas"),
    ("spec.decode.template.labels", {"team": "a"}, {"serving.hypic.dev/role": "x"}, "belong to"),
    ("spec.decode.scaling", {"max": 1}, {"min": 2, "max": 1}, "must not be above max"),
    ("spec.model.name", "Qwen/Qwen3.5-35B-A3B", "../etc", "spec.model.name"),
    ("spec.model.name", "m" * 128, "m" * 129, "spec.model.name"),
    ("spec.model.name", "a", "", "spec.model.name"),
    ("spec.model.source", {"hostPath": {"path": "/m"}}, {}, "exactly one of"),
    (
        "spec.model.source",
        {"pvc": {"claimName": "m"}},
        {"pvc": {"claimName": "m"}, "hostPath": {"path": "/m"}},
        "exactly one of huggingFace, pvc, image, hostPath",
    ),
    ("spec.model.source", HUB, {"huggingFace": {"repo": "gpt2"}}, "repo"),
    ("spec.model.source", HUB, {"huggingFace": {"repo": "a/b", "revision": "a b"}}, "revision"),
    ("spec.model.source", HUB, {"huggingFace": {"repo": "a/b", "tokenSecretRef": {}}}, "name"),
    ("spec.model.source", IMAGE, {"image": {"reference": ""}}, "reference"),
    (
        "spec.model.source",
        IMAGE,
        {"image": {"reference": "a", "path": "/a"}},
        "without a leading /",
    ),
    ("spec.model.source", IMAGE, {"image": {"reference": "a", "path": "../a"}}, "without .."),
    ("spec.model.source", IMAGE, {"image": {"reference": "a", "pullPolicy": "No"}}, "pullPolicy"),
    ("spec", _cached(pvc=CLAIM), _cached(pvc=CLAIM, node={"path": "/m"}), "give one of pvc, node"),
    ("spec", _cached(node={"path": "/m"}), _cached(node={"path": "m/m"}), "absolute"),
    ("spec", _cached(node={"path": "/m"}), _cached(node={"path": "/m/.."}), "without .."),
    ("spec", _cached(pvc=CLAIM), _cached(pvc={"claimName": "A"}), "claimName"),
    ("spec.modelCache", {}, {"pvc": CLAIM}, "remove modelCache"),
    ("spec.model.source.pvc.claimName", "models.v2", "Models", "claimName"),
    ("spec.model.source.pvc.path", "a/b", "/a/b", "without a leading /"),
    ("spec.model.source.pvc.path", "a..b", "a/../b", "without .."),
    ("spec.model.source", {"hostPath": {"path": "/m"}}, {"hostPath": {"path": "m/m"}}, "absolute"),
    ("spec.model.source", {"hostPath": {"path": "/m"}}, {"hostPath": {"path": "/m/.."}}, ".."),
    ("spec.pic.mode", "addition", "subtraction", "spec.pic.mode"),
    ("spec.pic.separator", " # # ", "", "spec.pic.separator"),
    ("spec.pic.separator", "s" * 128, "s" * 129, "spec.pic.separator"),
    ("spec.pic.separator", " # ", "  ", "not a space"),
    ("spec.pic.seam", 0, -1, "seam"),
    ("spec.pic.seam", 4096, 4097, "seam"),
    ("spec.pic.seam", "4096", "5000", "seam"),
    ("spec.pic.seam", "0.25", "1.25", "seam"),
    ("spec.pic.seam", "16", "a few", "seam"),
    ("spec.pic.seam", "1.0", "-0.5", "seam"),
    ("spec.pic.minSegmentTokens", 1, 0, "minSegmentTokens"),
    ("spec.pic.maxSegments", 65_536, 65_537, "maxSegments"),
    ("spec.pic.memory", "12.5%", "100%", "memory"),
    ("spec.pic.memory", "16Gi", "16G", "memory"),
    ("spec.prefill.replicas", 512, 513, "replicas"),
    ("spec.prefill.scaling", {"max": 2}, {"min": 2}, "max"),
    ("spec.prefill.scaling", {"min": 2, "max": 2}, {"min": 3, "max": 2}, "must not be above max"),
    ("spec.prefill.scaling", {"max": 2, "min": 0}, {"max": 2, "min": -1}, "min"),
    (
        "spec.prefill.scaling",
        {"max": 2, "min": 1, "metrics": [METRIC]},
        {"max": 2, "min": 0, "metrics": [METRIC]},
        "only the operator wakes",
    ),
    ("spec.prefill.scaling", {"max": 2, "by": "Others"}, {"max": 2, "by": "KEDA"}, "by"),
    ("spec.prefill.scaling", {"max": 2, "requests": 1}, {"max": 2, "requests": 0}, "requests"),
    (
        "spec.prefill.scaling",
        {"max": 2, "uncachedTokensPerSecond": 1},
        {"max": 2, "uncachedTokensPerSecond": 0},
        "uncachedTokensPerSecond",
    ),
    ("spec.prefill.scaling", {"max": 2, "calmSeconds": 0}, {"max": 2, "calmSeconds": -1}, "calm"),
    ("spec.prefill.scaling", {"max": 2, "idleSeconds": 10}, {"max": 2, "idleSeconds": 9}, "idle"),
    ("spec.prefill.scaling", {"max": 2, "metrics": [METRIC]}, {"max": 2, "metrics": [{}]}, "type"),
    ("spec.prefill.replicas", 1, 0, "replicas"),
    ("spec.prefill.tensorParallel", 8, 0, "tensorParallel"),
    (
        f"{TEMPLATE}.labels",
        {"team": "a"},
        {"serving.hypic.dev/role": "x"},
        "belong to the operator",
    ),
    (
        f"{TEMPLATE}.labels",
        {"app.kubernetes.io/part-of": "search"},
        {"app.kubernetes.io/name": "x"},
        "belong to the operator",
    ),
    (f"{TEMPLATE}.annotations", {"a": "b"}, {"serving.hypic.dev/drain": "x"}, "to the operator"),
    (f"{TEMPLATE}.volumes", _volume(emptyDir={}), [{"name": "model"}], "the name model"),
    (f"{TEMPLATE}.volumes", _volume(emptyDir={}), [*_volume(), *_volume()], "uplicate"),
    (f"{TEMPLATE}.resourceClaims", [{"name": "g"}], [{"resourceClaimName": "g"}], "name"),
    (f"{TEMPLATE}.engine.imagePullPolicy", "Never", "Sometimes", "imagePullPolicy"),
    (f"{TEMPLATE}.engine.image", "a", "", "engine.image"),
    (f"{TEMPLATE}.engine.resources", {"limits": {"a.b/c": 1}}, {"limits": {"cpu": []}}, "limits"),
    (f"{TEMPLATE}.engine.env", [{"name": "A", "value": "1"}], [{"value": "1"}], "name"),
    (f"{TEMPLATE}.engine.extraArgs", ["--a", "1"], ["--a", 1], "extraArgs"),
    ("spec.router.replicas", 64, 65, "router.replicas"),
    ("spec.router.policy", "least_load", "random", "router.policy"),
    ("spec.router", {"ingress": {"host": "a.b"}}, {"ingress": {"host": "A_b"}}, "host"),
    ("spec.router.apiKeysSecretRef", {"name": "keys"}, {}, "apiKeysSecretRef.name"),
    ("spec.router", {"gateway": GATEWAY}, {"gateway": {"parentRefs": []}}, "parentRefs"),
    (
        "spec.router",
        {"gateway": GATEWAY},
        {"gateway": GATEWAY, "ingress": {"host": "a.b"}},
        "give one of ingress, gateway",
    ),
    (
        "spec.router.ingress",
        {"host": "a.b", "annotations": {"a": "b"}},
        {"host": "a.b", "annotations": {"serving.hypic.dev/applied": "x"}},
        "to the operator",
    ),
    (
        "spec.router.template.labels",
        {"team": "a"},
        {"serving.hypic.dev/cluster": "other"},
        "belong to the operator",
    ),
    ("spec.router.template.annotations", {"a": "b"}, {"serving.hypic.dev/x": "y"}, "annotations:"),
    (
        "spec.router.gateway",
        {**GATEWAY, "annotations": {"a": "b"}},
        {**GATEWAY, "annotations": {"serving.hypic.dev/x": "y"}},
        "annotations: serving",
    ),
    ("spec.drain.timeoutSeconds", 0, -1, "timeoutSeconds"),
    ("spec.rollout.strategy", "Surge", "Canary", "strategy"),
    ("spec.rollout.maxSkew", 1, 0, "maxSkew"),
    ("spec.networkPolicy.enabled", False, "no", "enabled"),
    ("spec.networkPolicy.metricsFrom", [], ["everybody"], "metricsFrom"),
    ("spec.networkPolicy.enginesFrom", [{"podSelector": {}}], ["everybody"], "enginesFrom"),
    ("spec.monitoring.podMonitor", "Always", "Sometimes", "podMonitor"),
    ("spec.monitoring.labels", {"release": "a"}, {"release": "a" * 64}, "release"),
]


def _create(namespace: Namespace, body: dict[str, Any]) -> tuple[int, Any]:
    path = namespace.path("HypicCluster", query="dryRun=All&fieldValidation=Strict")
    return namespace.server.request("POST", path, body)


@pytest.mark.parametrize(("path", "good", "bad", "word"), RULES)
def test_each_rule_lets_pass_and_refuses(
    namespace: Namespace, path: str, good: Any, bad: Any, word: str
) -> None:
    status, answer = _create(namespace, _with(path, good))
    assert status == 201, answer
    status, answer = _create(namespace, _with(path, bad))
    assert status == 422, answer
    assert word in answer["message"]


SCHEMA = yaml.safe_load(CRD.read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def _rules(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Path and message of every rule that depends on more than one value's type and bounds."""
    for rule in schema.get("x-kubernetes-validations", ()):
        yield path, rule["message"]
    for name, field in schema.get("properties", {}).items():
        yield from _rules(field, f"{path}.{name}".lstrip("."))
    for below in ("items", "additionalProperties"):
        if isinstance(schema.get(below), Mapping):
            yield from _rules(schema[below], path)


@pytest.mark.parametrize(("path", "message"), sorted(set(_rules(SCHEMA))))
def test_each_rule_of_the_definition_has_such_a_pair(path: str, message: str) -> None:
    def of_a_role(place: str) -> str:
        return place.replace("spec.decode", "spec.prefill")  # one schema, as the next test says

    place = of_a_role(path)
    assert any(
        word in message
        and (place.startswith(of_a_role(tried)) or of_a_role(tried).startswith(place))
        for tried, _, _, word in RULES
    )


def test_both_roles_have_the_same_rules() -> None:
    spec = SCHEMA["properties"]["spec"]["properties"]
    prefill, decode = (sorted(_rules(spec[role])) for role in ("prefill", "decode"))
    assert prefill == decode != []


@pytest.mark.parametrize("path", ["spec.model", "spec.model.name", "spec.model.source"])
def test_what_must_be_given_is_asked_for(namespace: Namespace, path: str) -> None:
    status, answer = _create(namespace, _with(path, None))
    assert status == 422
    assert path in answer["message"]


def test_an_unknown_field_is_named(namespace: Namespace) -> None:
    status, answer = _create(namespace, _with("spec.pic.speed", 3))
    assert status == 400
    assert "spec.pic.speed" in answer["message"]


def test_defaults_are_filled_in_and_are_those_the_operator_assumes(namespace: Namespace) -> None:
    stored = namespace.create(resources.manifest())["spec"]
    assert stored == {
        "model": resources.MODEL,
        "pic": {
            "mode": "transition_rope_recompute",
            "separator": "<<PIC_SEP>>",
            "seam": "8",
            "minSegmentTokens": 6,
            "maxSegments": 512,
        },
        "prefill": {"replicas": 1, "tensorParallel": 1, "template": {"engine": {}}},
        "modelCache": {},
        "router": {"replicas": 2, "policy": "segment", "template": {}},
        "drain": {"timeoutSeconds": 60},
        "rollout": {"strategy": "Auto", "maxSkew": 1},
        "networkPolicy": {
            "enabled": True,
            "metricsFrom": [
                {
                    "namespaceSelector": {},
                    "podSelector": {"matchLabels": {"app.kubernetes.io/name": "prometheus"}},
                }
            ],
        },
        "monitoring": {"podMonitor": "Auto"},
    }
    assumed = resources.cluster().spec
    assert resources.cluster(**stored).spec == assumed


def test_kubernetes_own_fields_of_a_template_are_kept_production_stack_294(
    namespace: Namespace,
) -> None:
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}
    volume = {"name": "env", "persistentVolumeClaim": {"claimName": "e", "readOnly": True}}
    template = {
        "affinity": affinity,
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "volumes": [volume],
        "engine": {
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
        },
    }
    stored = namespace.create(resources.manifest(prefill={"template": template}))
    assert stored["spec"]["prefill"]["template"] == template


def _kubectl(server: ApiServer, *arguments: str) -> str:
    command = [str(apiserver.tool("kubectl")), "--kubeconfig", str(server.kubeconfig())]
    environment = {"HOME": str(server.folder), "PATH": ""}
    done = subprocess.run(
        [*command, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_explain_reads_like_documentation(server: ApiServer) -> None:
    said = _kubectl(server, "explain", "hypic.spec.pic.separator")
    assert "Text that cuts a prompt into segments" in said
    said = _kubectl(server, "explain", "hypic", "--recursive")
    assert "claimName" in said


def test_get_shows_what_a_user_looks_for(namespace: Namespace) -> None:
    namespace.create(resources.manifest())
    wide = _kubectl(namespace.server, "-n", namespace.name, "get", "hypic", "-o", "wide")
    head = wide.splitlines()[0].split()
    assert head == [
        *(
            "NAME",
            "READY",
            "REASON",
            "PREFILL",
            "DECODE",
            "HITS",
            "MODEL",
            "MODE",
            "REVISION",
            "URL",
            "AGE",
        )
    ]
    assert "demo" in _kubectl(namespace.server, "-n", namespace.name, "get", "all")


def test_plain_apply_can_carry_the_definition_lws_366() -> None:
    assert CRD.stat().st_size < 100_000


def test_the_guide_shows_what_explain_really_says(server: ApiServer) -> None:
    guide = (CRD.parents[1] / "docs" / "operate.md").read_text()
    shown = re.findall(r"^\$ kubectl (explain .*)\n((?:(?!```).*\n)+)", guide, flags=re.MULTILINE)
    assert len(shown) >= 2
    for command, said in shown:
        assert _kubectl(server, *command.split()).strip() == said.strip()
