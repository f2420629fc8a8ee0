import pytest
import yaml

from hypic_operator.core import names

from ..support.helm import ROOT, refusal, render, run
from ..support.pod_security import violations

CHART = "hypic-operator"
CI = ROOT / "charts" / CHART / "ci"
SCENARIOS = [(), (CI / "one-namespace-values.yaml",), (CI / "every-value-values.yaml",)]
IDS = ["defaults", "one namespace", "every value"]


def pod(rendered):
    return rendered.one("Deployment")["spec"]["template"]["spec"]


def arguments(rendered):
    words = pod(rendered)["containers"][0]["args"]
    flags = [word for word in words if word != "--allow-host-path"]
    return dict(zip(flags[::2], flags[1::2], strict=True))


def working(rendered, kind):
    """Roles or bindings for the operator's work, without those for its Lease."""
    return [item for item in rendered.of(kind) if not item["metadata"]["name"].endswith("-lease")]


@pytest.mark.parametrize("files", SCENARIOS, ids=IDS)
def test_rendering_twice_gives_the_same_bytes(files):
    first, second = (render(CHART, *files, anew=True).text for _ in range(2))
    assert first == second


@pytest.mark.parametrize("files", SCENARIOS, ids=IDS)
def test_helm_finds_nothing_to_complain_about(files):
    named = [word for path in files for word in ("-f", str(path))]
    done = run("lint", "--strict", f"charts/{CHART}", *named)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("files", SCENARIOS, ids=IDS)
def test_the_operator_runs_under_the_restricted_profile(files):
    assert violations(pod(render(CHART, *files))) == []


@pytest.mark.parametrize("files", SCENARIOS, ids=IDS)
def test_every_object_carries_the_recommended_labels(files):
    for manifest in render(CHART, *files).objects:
        if manifest["kind"] != "CustomResourceDefinition":
            labels = manifest["metadata"]["labels"]
            assert labels["app.kubernetes.io/name"] == "hypic-operator"
            assert labels["app.kubernetes.io/instance"] == "demo"
            assert labels["app.kubernetes.io/managed-by"] == "Helm"


def test_the_operator_cannot_write_its_root():
    deployment = render(CHART).one("Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_a_selector_holds_no_version_so_that_an_upgrade_can_apply():
    selector = render(CHART).one("Deployment")["spec"]["selector"]["matchLabels"]
    assert not any("chart" in key or "version" in key for key in selector)


def test_the_metrics_service_selects_the_operators_pod():
    rendered = render(CHART)
    service = rendered.one("Service")["spec"]
    template = rendered.one("Deployment")["spec"]["template"]
    assert service["selector"].items() <= template["metadata"]["labels"].items()
    ports = {
        port["name"]: port["containerPort"] for port in pod(rendered)["containers"][0]["ports"]
    }
    assert ports[service["ports"][0]["targetPort"]] == 9090


def test_images_of_engine_and_router_stand_beside_the_operators():
    rendered = render(CHART, image__repository="localhost/hypic/operator", image__tag="7")
    assert pod(rendered)["containers"][0]["image"] == "localhost/hypic/operator:7"
    assert arguments(rendered)["--engine-image"] == "localhost/hypic/engine:7"
    assert arguments(rendered)["--router-image"] == "localhost/hypic/router:7"


def test_images_of_engine_and_router_can_be_others():
    args = arguments(render(CHART, engineImage="a/b:1", routerImage="c/d:2"))
    assert (args["--engine-image"], args["--router-image"]) == ("a/b:1", "c/d:2")


def test_every_value_reaches_its_place():
    rendered = render(CHART, CI / "every-value-values.yaml")
    spec = pod(rendered)
    (container,) = spec["containers"]
    assert "--allow-host-path" in container["args"]
    assert container["imagePullPolicy"] == "Always"
    assert container["env"] == [{"name": "HTTPS_PROXY", "value": "http://proxy.example.test:3128"}]
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    assert spec["priorityClassName"] == "system-cluster-critical"
    assert spec["nodeSelector"] == {"example.test/pool": "cpu"}
    assert spec["tolerations"] == [{"key": "example.test/infra", "operator": "Exists"}]
    assert "nodeAffinity" in spec["affinity"]
    assert spec["serviceAccountName"] == rendered.one("ServiceAccount")["metadata"]["name"]
    template = rendered.one("Deployment")["spec"]["template"]["metadata"]
    assert template["labels"]["zone"] == "blue"
    assert template["annotations"] == {"example.test/owner": "serving"}
    for manifest in rendered.objects:
        if manifest["kind"] != "CustomResourceDefinition":
            assert manifest["metadata"]["labels"]["team"] == "serving"


def test_one_namespace_takes_no_right_outside_it():
    rendered = render(CHART, CI / "one-namespace-values.yaml")
    assert arguments(rendered)["--namespace"] == "team-a"
    kinds = {manifest["kind"] for manifest in rendered.objects}
    assert not kinds & {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}
    assert {role["metadata"]["namespace"] for role in working(rendered, "Role")} == {"team-a"}


def test_each_watched_namespace_has_its_role_and_binding():
    rendered = render(CHART, watchNamespaces=["a", "b"])
    for kind in ("Role", "RoleBinding"):
        found = working(rendered, kind)
        assert [item["metadata"]["namespace"] for item in found] == ["a", "b"]
    account = rendered.one("ServiceAccount")["metadata"]
    for binding in rendered.of("RoleBinding"):
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
        ]


def test_the_rights_are_the_same_cluster_wide_and_in_a_namespace_but_for_who_acts_there():
    *wide, reads = render(CHART, rbac__aggregate=False).one("ClusterRole")["rules"]
    (role,) = working(render(CHART, watchNamespaces=["a"]), "Role")
    *single, makes, holds = role["rules"]
    assert single == wide
    lease = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    named = {**lease, "resourceNames": [names.SCOPE_LEASE]}
    assert reads == {**named, "verbs": ["get"]}
    assert (makes, holds) == ({**lease, "verbs": ["create"]}, {**named, "verbs": ["get", "patch"]})


@pytest.mark.parametrize("files", SCENARIOS, ids=IDS)
def test_the_lease_is_in_the_operators_own_namespace_with_rights_for_it_and_no_more(files):
    rendered = render(CHART, *files)
    (role,) = (role for role in rendered.of("Role") if role["metadata"]["name"].endswith("-lease"))
    rights = ROOT / "tests" / "data" / "operator" / "lease_rights.yaml"
    deployment = rendered.one("Deployment")["metadata"]
    name = f"{deployment['name']}-keys"
    assert role["rules"] == yaml.safe_load(rights.read_text().replace("hypic-operator-keys", name))
    assert arguments(rendered)["--key-secret"] == f"{deployment['namespace']}/{name}"
    (secret,) = rendered.of("Secret")
    assert (secret["metadata"]["name"], secret.get("data")) == (name, None)
    assert role["metadata"]["namespace"] == deployment["namespace"]
    assert arguments(rendered)["--lease"] == f"{deployment['namespace']}/{deployment['name']}"


def test_two_operators_run_and_as_many_as_asked_for():
    assert render(CHART).one("Deployment")["spec"]["replicas"] == 2
    files = (CI / "every-value-values.yaml",)
    assert render(CHART, *files).one("Deployment")["spec"]["replicas"] == 3


def test_no_rule_is_a_wildcard_and_none_reads_secrets_kserve_681():
    for role in render(CHART).of("ClusterRole"):
        for rule in role["rules"]:
            assert "*" not in rule["verbs"] + rule["resources"] + rule["apiGroups"]
            assert "secrets" not in rule["resources"]


def test_without_rbac_nothing_grants_rights():
    rendered = render(CHART, rbac__create=False)
    kinds = {manifest["kind"] for manifest in rendered.objects}
    assert not kinds & {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}


def test_people_who_edit_may_create_clusters_and_people_who_view_may_see_them():
    roles = render(CHART).of("ClusterRole")
    label = "rbac.authorization.k8s.io/aggregate-to-"
    rules = {
        (name, resource): rule["verbs"]
        for name in ("view", "edit")
        for role in roles
        if role["metadata"]["labels"].get(label + name)
        for rule in role["rules"]
        for resource in rule["resources"]
    }
    for resource in ("hypicclusters", "hypicroles", "hypicroles/scale"):
        assert rules["view", resource] == ["get", "list", "watch"]
    assert "create" in rules["edit", "hypicclusters"]
    assert rules["edit", "hypicroles/scale"] == rules["edit", "hypicroles"] == ["patch", "update"]


def test_authors_are_checked_where_the_whole_cluster_is_served():
    kinds = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    policy, binding = (render(CHART).one(kind) for kind in kinds)
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    for values in ({"admission__authors": False}, {"watchNamespaces": ["team-a"]}):
        assert not any(render(CHART, **values).of(kind) for kind in kinds)


def test_crds_are_the_source_plus_the_policy_that_keeps_them_lws_880():
    crds = render(CHART).of("CustomResourceDefinition")
    sources = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "crds").glob("*.yaml"))]
    assert crds
    for crd, source in zip(crds, sources, strict=True):
        assert crd["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
        assert crd == source


def test_crds_can_be_left_out():
    assert render(CHART, crds__install=False).of("CustomResourceDefinition") == []


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"image__pullPolicy": "Sometimes"}, "/image/pullPolicy"),
        ({"image__repository": 1}, "/image/repository"),
        ({"watchNamespaces": "team-a"}, "/watchNamespaces"),
        ({"watchNamespaces": ["Team_A"]}, "/watchNamespaces/0"),
        ({"allowHostPath": "yes"}, "/allowHostPath"),
        ({"replicaCount": 2}, "replicaCount"),
        ({"crds__instal": True}, "instal"),
        ({"imagePullSecrets": ["pull"]}, "/imagePullSecrets/0"),
    ],
)
def test_a_wrong_value_is_refused_by_name(values, word):
    assert word in refusal(CHART, **values)


def test_no_image_is_taken_from_a_place_that_nobody_named():
    said = refusal(CHART, image__repository="")
    assert "image.repository is required: where you pushed the operator's image" in said


def test_a_long_release_name_still_gives_names_that_fit():
    for manifest in render(CHART, release="r" * 53).objects:
        assert len(manifest["metadata"]["name"]) <= 63


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ("demo", "demo-hypic-operator"),
        ("hypic", "hypic-operator"),
        ("hypic-operator", "hypic-operator"),
        ("my-hypic-operator", "my-hypic-operator"),
    ],
)
def test_names_do_not_repeat_what_the_release_says_already(release, name):
    assert render(CHART, release=release).one("Deployment")["metadata"]["name"] == name


@pytest.mark.parametrize("word", ["y", "no", "null"])
def test_words_that_yaml_takes_for_something_else_stay_words(word):
    rendered = render(CHART, release=word)
    for manifest in rendered.objects:
        metadata = manifest["metadata"]
        assert isinstance(metadata["name"], str)
        assert all(isinstance(value, str) for value in metadata.get("labels", {}).values())
        if manifest["kind"] != "CustomResourceDefinition":
            assert metadata["labels"]["app.kubernetes.io/instance"] == word
