"""Whoever writes a HypicCluster gets no more rights by it than he had."""

from collections.abc import Iterator
from typing import Any

import pytest

from hypic_operator.core import desired
from hypic_operator.core.observed import Observed

from ...support import apiserver, helm, resources
from ...support.apiserver import ApiServer
from ...support.playing import MERGE, Namespace
from ...support.waiting import eventually

POLICIES = "/apis/admissionregistration.k8s.io/v1"
RBAC = "rbac.authorization.k8s.io"
CLUSTERS = {
    "apiGroups": ["serving.hypic.dev"],
    "resources": ["hypicclusters"],
    "verbs": ["get", "create", "patch", "update"],
}
PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}


@pytest.fixture
def guarded(server: ApiServer) -> Iterator[ApiServer]:
    """The API server with the chart's policy."""
    rendered = helm.render("hypic-operator")
    places = []
    for kind, plural in (
        ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    ):
        body = rendered.one(kind)
        status, answer = server.request("POST", f"{POLICIES}/{plural}", body)
        assert status == 201, answer
        places.append(f"{POLICIES}/{plural}/{body['metadata']['name']}")
    yield server
    for place in places:
        assert server.request("DELETE", place)[0] == 200


def _allow(namespace: Namespace, name: str, rule: dict[str, Any]) -> None:
    metadata = {"name": name}
    role = {"kind": "Role", "metadata": metadata, "rules": [rule]}
    who = [{"apiGroup": RBAC, "kind": "User", "name": apiserver.AUTHOR}]
    what = {"apiGroup": RBAC, "kind": "Role", "name": name}
    namespace.create(role)
    namespace.create(
        {"kind": "RoleBinding", "metadata": metadata, "roleRef": what, "subjects": who}
    )


def _write(namespace: Namespace, name: str, *, dry: bool = False) -> tuple[int, Any]:
    path = namespace.path("HypicCluster", query="dryRun=All" if dry else "")
    body = resources.manifest(name)
    return namespace.server.request("POST", path, body, user=apiserver.AUTHOR)


def _change(namespace: Namespace, change: Any) -> tuple[int, Any]:
    path = namespace.path("HypicCluster", "demo")
    return namespace.server.request(
        "PATCH", path, change, content_type=MERGE, user=apiserver.AUTHOR
    )


def test_who_may_not_create_pods_may_not_have_them_created(
    guarded: ApiServer, namespace: Namespace
) -> None:
    assert guarded is namespace.server
    _allow(namespace, "clusters", CLUSTERS)
    words = "takes the right to create pods in its namespace"
    eventually(
        lambda: _write(namespace, "tried", dry=True),
        until=lambda seen: seen[0] == 403 and words in seen[1]["message"],
    )
    namespace.create(resources.manifest())
    image = {"prefill": {"template": {"engine": {"image": "registry.example.test/mine"}}}}
    assert _change(namespace, {"spec": image})[0] == 403
    # Labels say nothing of pods, and the garbage collector takes finalizers away.
    assert _change(namespace, {"metadata": {"labels": {"team": "a"}}})[0] == 200
    _allow(namespace, "pods", PODS)
    assert (
        eventually(lambda: _write(namespace, "mine"), until=lambda seen: seen[0] != 403)[0] == 201
    )
    assert _change(namespace, {"spec": image})[0] == 200


# What a pod's spec would have to say to get at the node or at other identities.
ESCAPES: dict[str, Any] = {
    "serviceAccountName": "cluster-admin",
    "automountServiceAccountToken": True,
    "hostNetwork": True,
    "hostPID": True,
    "hostIPC": True,
    "hostUsers": True,
    "nodeName": "control-plane",
    "securityContext": {"runAsUser": 0},
    "initContainers": [{"name": "root", "image": "i"}],
    "containers": [{"name": "root", "image": "i", "securityContext": {"privileged": True}}],
    "shareProcessNamespace": True,
    "schedulerName": "mine",
}
IN_THE_ENGINE: dict[str, Any] = {
    "securityContext": {"privileged": True},
    "command": ["sh"],
    "lifecycle": {"preStop": {"exec": {"command": ["sh"]}}},
    "ports": [{"containerPort": 1, "hostPort": 1}],
    "volumeDevices": [{"name": "disk", "devicePath": "/dev/sda"}],
    "envFrom": [{"secretRef": {"name": "others"}}],
}
TRIED = [
    *(({field: value}, field) for field, value in ESCAPES.items()),
    *(({"engine": {field: value}}, field) for field, value in IN_THE_ENGINE.items()),
]


@pytest.mark.parametrize(("template", "field"), TRIED, ids=[field for _, field in TRIED])
def test_a_field_that_would_give_more_rights_cannot_be_said(
    namespace: Namespace, template: dict[str, Any], field: str
) -> None:
    plain = namespace.create(resources.manifest("plain"))
    path = namespace.path("HypicCluster", query="fieldValidation=Strict")
    body = resources.manifest(prefill={"template": template})
    status, answer = namespace.server.request("POST", path, body)
    assert status == 400
    assert field in answer["message"]
    # A client that does not ask for strictness gets a cluster without the field.
    stored = namespace.create(body)
    assert stored["spec"] == plain["spec"]


@pytest.mark.parametrize(
    ("template", "word"),
    [
        (
            {
                "volumeMounts": [
                    {"name": "tmp", "mountPath": "/x", "mountPropagation": "Bidirectional"}
                ]
            },
            "privileged",
        ),
        ({"env": [{"name": "A", "valueFrom": {"fileKeyRef": {}}}]}, ""),
    ],
)
def test_what_is_kept_as_it_is_still_meets_the_namespaces_standard(
    namespace: Namespace, template: dict[str, Any], word: str
) -> None:
    """The API server looks at each pod again, under the restricted standard of the namespace."""
    cluster = resources.cluster(prefill={"template": {"engine": template}})
    children = desired.children(cluster, resources.POLICY, Observed())
    (made,) = (item for item in children if item["kind"] == "StatefulSet")
    pod = {"metadata": {"name": "tried"}, "spec": made["spec"]["template"]["spec"]}
    status, answer = namespace.server.request("POST", namespace.path("Pod"), pod)
    assert status in {403, 422}
    assert word in answer["message"]
