import pytest
import yaml

from ..support.helm import ROOT, refusal, render, run
from ..support.pod_security import violations

CHART = "hypic-cluster"
CI = ROOT / "charts" / CHART / "ci"
SCENARIOS = [(CI / "one-machine-values.yaml",), (CI / "every-value-values.yaml",)]
IDS = ["one machine", "every value"]
CHART_ONLY = {"name", "labels", "annotations", "test", "global"}


def crd_spec():
    crd = yaml.safe_load((ROOT / "crds" / "serving.hypic.dev_hypicclusters.yaml").read_text())
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def leaves(schema, above=()):
    for name, child in schema.get("properties", {}).items():
        path = (*above, name)
        if child.get("type") == "object" and child.get("properties") and path not in WHOLE:
            yield from leaves(child, path)
        else:
            yield path


# Values that are given whole, as the resource has them.
WHOLE = {
    *(("model", "source", name) for name in ("huggingFace", "pvc", "image", "hostPath")),
    *(("modelCache", name) for name in ("pvc", "node")),
    *(("prefill", name) for name in ("scaling", "template")),
    ("decode",),
    *(("router", name) for name in ("apiKeysSecretRef", "ingress", "gateway", "template")),
}


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
def test_the_test_runs_under_the_restricted_profile_without_a_token(files):
    pod = render(CHART, *files).one("Pod")
    assert violations(pod["spec"]) == []
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"


def test_what_nobody_gave_is_left_to_the_resources_defaults():
    spec = render(CHART, model__name="m", model__source__pvc={"claimName": "c"}).one("HypicCluster")
    assert spec["spec"] == {"model": {"name": "m", "source": {"pvc": {"claimName": "c"}}}}


def test_what_is_given_is_the_spec():
    files = CI / "every-value-values.yaml"
    values = yaml.safe_load(files.read_text())
    wanted = {key: value for key, value in values.items() if key not in CHART_ONLY}
    cluster = render(CHART, files).one("HypicCluster")
    assert cluster["spec"] == wanted
    assert cluster["metadata"]["name"] == "every-value"
    assert cluster["metadata"]["annotations"] == {"example.test/owner": "search"}
    assert cluster["metadata"]["labels"]["team"] == "search"


def test_zero_false_and_empty_maps_that_somebody_gave_are_kept():
    template = {"engine": {"resources": {}}}
    given = {"prefill__template": template, "drain__timeoutSeconds": 0, "pic__seam": 0}
    cluster = render(CHART, model__name="m", **given).one("HypicCluster")
    assert cluster["spec"]["prefill"] == {"template": template}
    assert cluster["spec"]["drain"] == {"timeoutSeconds": 0}
    assert cluster["spec"]["pic"] == {"seam": 0}


def test_the_name_is_the_releases_unless_given():
    assert render(CHART, model__name="m").one("HypicCluster")["metadata"]["name"] == "demo"
    named = render(CHART, model__name="m", name="other")
    assert named.one("HypicCluster")["metadata"]["name"] == "other"
    environment = {e["name"]: e["value"] for e in named.one("Pod")["spec"]["containers"][0]["env"]}
    assert environment["HOST"] == "other.team-a.svc:80"
    assert environment["MODEL"] == "m"


def test_the_values_mirror_the_resources_spec():
    schema = run("show", "values", f"charts/{CHART}")
    values = yaml.safe_load(schema.stdout)

    def walk(at, above=()):
        for key, child in at.items():
            path = (*above, key)
            if isinstance(child, dict):
                yield from walk(child, path)
            else:
                yield path

    spec_values = {key: value for key, value in values.items() if key not in CHART_ONLY}
    assert sorted(walk(spec_values)) == sorted(leaves(crd_spec()))


def test_choices_and_limits_are_those_of_the_resource():
    cases = {"mode": ("pic", "mode"), "policy": ("router", "policy")}
    for group, field in cases.values():
        allowed = crd_spec()["properties"][group]["properties"][field]["enum"]
        base = {"model__name": "m"}
        for choice in allowed:
            render(CHART, **base, **{f"{group}__{field}": choice})
        assert all(
            choice in refusal(CHART, **base, **{f"{group}__{field}": "?"}) for choice in allowed
        )


def test_without_a_model_helm_says_what_is_missing():
    assert "model.name is required" in refusal(CHART)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"pic__mode": "fast"}, "/pic/mode"),
        ({"pic__separator": ""}, "/pic/separator"),
        ({"pic__seam": True}, "/pic/seam"),
        ({"prefill__replicas": -1}, "/prefill/replicas"),
        ({"prefill__replica": 2}, "replica"),
        ({"prefill__tensorParallel": 0}, "/prefill/tensorParallel"),
        ({"router__policy": "random"}, "/router/policy"),
        ({"decode": 2}, "/decode"),
        ({"modelCache__pvc": {"claim": "x"}}, "claimName"),
        ({"prefill__scaling": {"min": 1}}, "max"),
        ({"router__gateway": {"parentRefs": []}}, "/router/gateway/parentRefs"),
        ({"monitoring__podMonitor": "sometimes"}, "/monitoring/podMonitor"),
        ({"drain__timeoutSeconds": "60s"}, "/drain/timeoutSeconds"),
        ({"model__source__pvc": {"path": "x"}}, "claimName"),
        ({"model__source__s3": {"bucket": "x"}}, "s3"),
        ({"name": "With.Dots"}, "/name"),
        ({"name": "n" * 36}, "/name"),
        ({"test__timeoutSeconds": 0}, "/test/timeoutSeconds"),
    ],
)
def test_a_wrong_value_is_refused_by_name(values, word):
    assert word in refusal(CHART, model__name="m", **values)


def test_no_image_is_taken_from_a_place_that_nobody_named():
    said = refusal(CHART, model__name="m", test__image__repository="")
    assert "test.image.repository is required: where you pushed the router's image" in said


def test_the_test_can_be_left_out_and_needs_no_image_then():
    off = {"test__enabled": False, "test__image__repository": ""}
    assert render(CHART, model__name="m", **off).of("Pod") == []


def test_a_release_name_that_makes_no_service_name_is_refused_with_what_to_do():
    done = run("template", "r" * 36, f"charts/{CHART}", "--set", "model.name=m")
    assert "at most 35" in done.stderr


@pytest.mark.parametrize("word", ["y", "no", "null"])
def test_words_that_yaml_takes_for_something_else_stay_words(word):
    rendered = render(CHART, release=word, model__name="1e3", name="n")
    for manifest in rendered.objects:
        metadata = manifest["metadata"]
        assert isinstance(metadata["name"], str)
        assert all(isinstance(value, str) for value in metadata.get("labels", {}).values())
        if manifest["kind"] != "CustomResourceDefinition":
            assert metadata["labels"]["app.kubernetes.io/instance"] == word
