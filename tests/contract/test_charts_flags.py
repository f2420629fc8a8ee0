import pytest

from hypic_operator.core import names
from hypic_operator.settings import settings

from ..support.helm import ROOT, render

CI = ROOT / "charts" / "hypic-operator" / "ci"


def pod(*files, **values):
    return render("hypic-operator", *files, **values).one("Deployment")["spec"]["template"]["spec"]


def parsed(*files, **values):
    (container,) = pod(*files, **values)["containers"]
    return settings(container["args"], {})


def test_the_operator_takes_the_arguments_that_the_chart_gives():
    given = parsed(image__repository="localhost/hypic/operator", image__tag="7")
    assert given.namespaces == ()
    assert given.policy.engine_image == "localhost/hypic/engine:7"
    assert given.policy.router_image == "localhost/hypic/router:7"
    assert given.policy.allow_host_path is False


def test_every_choice_of_the_chart_is_one_of_the_operators():
    given = parsed(CI / "every-value-values.yaml", watchNamespaces=["a", "b"])
    assert given.namespaces == ("a", "b")
    assert given.policy.allow_host_path is True
    assert given.policy.pull_policy == "Always"
    for level in ("debug", "info", "warning", "error"):
        assert parsed(log__level=level, log__format="json").log_level == level


def test_ports_of_the_pod_are_those_that_the_operator_listens_on():
    given = parsed()
    (container,) = pod()["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"health": given.health_port, "metrics": given.metrics_port}
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "health"}


@pytest.mark.parametrize("length", [1, 35])
def test_a_name_that_the_cluster_chart_takes_is_the_services_name(length):
    name = "n" * length
    cluster = render("hypic-cluster", model__name="m", name=name).one("HypicCluster")
    assert names.base(cluster["metadata"]["name"]) == name
    assert names.BASE_LIMIT == 35


def test_the_operators_pods_carry_none_of_the_labels_that_it_watches():
    labels = render("hypic-operator").one("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert labels[names.LABEL_MANAGED_BY] != names.FIELD_MANAGER
    assert not any(key.startswith(f"{names.GROUP}/") for key in labels)
