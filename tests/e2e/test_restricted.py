"""Story: namespaces that admit only the restricted profile admit all of ours, without a warning."""

import pytest

from local.demo.install import NAME
from local.shell import attempt

from ..support.pod_security import violations
from .conftest import DEMO_NAMESPACE
from .spare import SPARE_NAMESPACE
from .world import OPERATOR_NAMESPACE, engines, routers

PROFILE = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}


@pytest.mark.usefixtures("demo_kubectl")
@pytest.mark.parametrize("namespace", [OPERATOR_NAMESPACE, DEMO_NAMESPACE])
def test_all_pods_run_under_the_restricted_profile(namespace, world):
    kubectl = world.kubectl(namespace)
    labels = kubectl.get("namespace", namespace)["metadata"]["labels"]
    assert labels.items() >= PROFILE.items()
    pods = kubectl.get("pods")["items"]
    assert pods
    assert [violations(pod["spec"]) for pod in pods] == [[]] * len(pods)


@pytest.mark.usefixtures("demo_kubectl")
def test_nothing_was_refused(world):
    for namespace in (OPERATOR_NAMESPACE, DEMO_NAMESPACE):
        for event in world.kubectl(namespace).get("events")["items"]:
            assert "violates PodSecurity" not in event.get("message", "")


def test_engines_have_no_token_of_the_api_server_and_routers_have_one(demo_kubectl):
    def with_token(names):
        pods = (demo_kubectl.get("pod", name)["spec"] for name in names)
        return [any("projected" in volume for volume in pod["volumes"]) for pod in pods]

    assert with_token(engines(demo_kubectl, NAME)) == [False, False]
    assert with_token(routers(demo_kubectl, NAME)) == [True, True]


RENDERED = [
    ("hypic-operator", "every-value"),
    ("hypic-cluster", "one-machine"),
    ("hypic-cluster", "every-value"),
]


@pytest.mark.parametrize(("chart", "scenario"), RENDERED)
def test_the_api_server_takes_what_the_charts_render_without_a_warning(
    chart, scenario, world, spare_kubectl
):
    values = ["-f", f"charts/{chart}/ci/{scenario}-values.yaml"]
    rendered = world.helm(SPARE_NAMESPACE, "template", "dry", f"charts/{chart}", *values)
    assert rendered.returncode == 0, rendered.stderr
    # The CRD is there already, owned by the release of this tier; no Prometheus operator is here.
    parts = [
        part
        for part in rendered.stdout.split("---\n")
        if "kind: CustomRes" not in part and "monitoring.coreos.com/" not in part
    ]
    strict = spare_kubectl.command("create", "--dry-run=server", "--validate=strict", "-f", "-")
    taken = attempt(strict, text_in="---\n".join(parts))
    assert taken.returncode == 0, taken.stderr
    assert "created (server dry run)" in taken.stdout
    assert taken.stderr == ""
