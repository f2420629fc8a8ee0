"""The operator has the rights that it uses and no other: what it asks for against its Role."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from hypic_operator.settings import Settings

from ...support import apiserver, resources
from ...support.apiserver import ApiServer
from ...support.controllers import Controllers
from ...support.playing import PATHS, Namespace, PlayedProber, RunningOperator
from ...support.waiting import eventually
from .conftest import DEFINITIONS, RIGHTS, grant, install

Right = tuple[str, str, str]
OTHERS = {
    "HTTPRoute": ("gateway.networking.k8s.io", "httproutes"),
    "PodMonitor": ("monitoring.coreos.com", "podmonitors"),
}
# Never asked for, and needed all the same.
HELD: set[Right] = {
    # Clusters may want it of whoever writes owner references that block deletion.
    ("serving.hypic.dev", "hypicclusters/finalizers", "update"),
    # The router's Role has it, and nobody can grant what he does not hold.
    ("", "pods", "get"),
}
# Of pods that have an address, drains are told; nobody is at this one (RFC 5737).
SOMEWHERE = {**resources.READY, "podIP": "192.0.2.1"}
SPEC: dict[str, Any] = {
    "prefill": {
        "scaling": {
            "max": 3,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 60},
                    },
                }
            ],
        }
    },
    "decode": {},
    "router": {"gateway": {"parentRefs": [{"name": "public"}]}},
    "drain": {"timeoutSeconds": 1},
}


def _definition(kind: str) -> dict[str, Any]:
    group, plural = OTHERS[kind]
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [version],
        },
    }


@pytest.fixture
def whole() -> Iterator[ApiServer]:
    """An API server that has the kinds of others too."""
    with apiserver.running() as found:
        install(found)
        for kind, (group, plural) in OTHERS.items():
            status, answer = found.request("POST", DEFINITIONS, _definition(kind))
            assert status == 201, answer
            path = f"/apis/{group}/v1/{plural}"
            eventually(lambda path=path: found.request("GET", path)[0] == 200)
        grant(found)
        yield found


def _asked(server: ApiServer) -> set[Right]:
    """What the operator did, as rights; an object that an apply made needs the right to create."""
    found = set()
    for event in server.audited():
        about = event.get("objectRef")
        if about is None or (event["responseStatus"]["code"] == 404 and event["verb"] == "list"):
            continue
        resource = about["resource"]
        if "subresource" in about:
            resource = f"{resource}/{about['subresource']}"
        verbs = [event["verb"]]
        if event["verb"] == "patch" and event["responseStatus"]["code"] == 201:
            verbs.append("create")
        found |= {(about.get("apiGroup", ""), resource, verb) for verb in verbs}
    return found


def _granted() -> set[Right]:
    return {
        (group, resource, verb)
        for file in RIGHTS
        for rule in yaml.safe_load(file.read_text())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def _leave_behind(namespace: Namespace) -> list[tuple[str, str]]:
    """Children as an earlier operator may have made them, under other names: copies of each."""
    made = []
    for child in namespace.children("demo"):
        if child["kind"] == "StatefulSet":
            continue
        kept = {key: child["metadata"][key] for key in ("labels", "ownerReferences")}
        body = {key: child[key] for key in ("spec", "rules", "roleRef", "subjects") if key in child}
        if child["kind"] == "Service":
            body["spec"] = {key: body["spec"][key] for key in ("ports", "selector")}
        name = f"old-{len(made)}"
        metadata = {**kept, "name": name}
        prefix, _ = PATHS[child["kind"]]
        version = prefix.partition("/")[2]
        namespace.create(
            {**body, "apiVersion": version, "kind": child["kind"], "metadata": metadata}
        )
        made.append((child["kind"], name))
    return made


def _live_through(namespace: Namespace) -> None:
    """Everything that happens to a cluster in its life: made, rolled, and given another door."""
    namespace.until("demo", "Ready", "True")
    namespace.patch("HypicCluster", "demo", {"spec": {"pic": {"seam": "16"}}})
    namespace.until("demo", "Ready", "True")
    eventually(lambda: len(namespace.sets("demo")) == 2)
    assert namespace.get("HTTPRoute", "demo")
    assert namespace.get("PodMonitor", "demo-engine")
    door = {"gateway": None, "ingress": {"host": "a.test"}}
    changed = {"router": door, "monitoring": {"podMonitor": "Never"}}
    namespace.patch("HypicCluster", "demo", {"spec": changed})
    eventually(lambda: namespace.get("Ingress", "demo"))
    eventually(lambda: namespace.get("HTTPRoute", "demo") is None)
    eventually(lambda: namespace.get("PodMonitor", "demo-engine") is None)


def test_every_right_is_used_and_every_request_allowed(whole: ApiServer) -> None:
    status, answer = whole.request("POST", "/api/v1/namespaces", {"metadata": {"name": "rights"}})
    assert status == 201, answer
    namespace = Namespace(whole, "rights")
    settings = Settings(
        resources.POLICY,
        namespaces=("rights",),
        metrics_port=0,
        health_port=0,
        lease="rights/operator",
        key_secret="rights/hypic-operator-keys",
        kubeconfig=str(whole.kubeconfig(apiserver.OPERATOR)),
    )
    namespace.create({"kind": "Secret", "metadata": {"name": "hypic-operator-keys"}})
    with RunningOperator(settings, PlayedProber()) as operator:
        namespace.create(resources.manifest(**SPEC))
        eventually(lambda: len(namespace.sets("demo")) == 2)
        operator.look(namespace, "demo")  # sees sets without pods
        with Controllers(namespace, status=lambda _: SOMEWHERE):
            _live_through(namespace)
        left = _leave_behind(namespace)
        operator.look(namespace, "demo")
        eventually(lambda: not any(namespace.get(kind, name) for kind, name in left))
    asked, granted = _asked(whole), _granted()
    assert asked - granted == set()
    assert granted - asked == HELD
