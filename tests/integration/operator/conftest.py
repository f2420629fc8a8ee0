import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import yaml

from hypic_operator.settings import Settings

from ...support import apiserver, resources
from ...support.apiserver import ApiServer
from ...support.playing import Namespace, PlayedProber, RunningOperator
from ...support.waiting import eventually

REPOSITORY = Path(__file__).parents[3]
CRDS = REPOSITORY / "crds"
CRD = CRDS / "serving.hypic.dev_hypicclusters.yaml"
PLURALS = {"hypicclusters", "hypicroles"}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RIGHTS = [
    REPOSITORY / "tests" / "data" / "operator" / name
    for name in ("rights.yaml", "lease_rights.yaml")
]

Operating = Callable[..., AbstractContextManager[RunningOperator]]


@pytest.fixture(scope="session")
def server() -> Iterator[ApiServer]:
    with apiserver.running() as found:
        install(found)
        grant(found)
        yield found


def install(server: ApiServer) -> None:
    """Install the CustomResourceDefinitions, and wait until both kinds are served."""
    for file in CRDS.glob("*.yaml"):
        status, answer = server.request("POST", DEFINITIONS, yaml.safe_load(file.read_text()))
        assert status == 201, answer
    eventually(lambda: served(server) == PLURALS)


def served(server: ApiServer) -> set[str]:
    """Kinds of ours that the API server has objects of, or would have."""
    base = "/apis/serving.hypic.dev/v1alpha1"
    return {plural for plural in PLURALS if server.request("GET", f"{base}/{plural}")[0] == 200}


def grant(server: ApiServer) -> None:
    """Give the operator's user exactly the rights that the chart gives it."""
    group = "rbac.authorization.k8s.io"
    base = f"/apis/{group}/v1"
    rules = [rule for file in RIGHTS for rule in yaml.safe_load(file.read_text())]
    role = {"metadata": {"name": "hypic-operator"}, "rules": rules}
    binding = {
        "metadata": {"name": "hypic-operator"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "hypic-operator"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": apiserver.OPERATOR}],
    }
    for plural, body in (("clusterroles", role), ("clusterrolebindings", binding)):
        status, answer = server.request("POST", f"{base}/{plural}", body)
        assert status == 201, answer


_NUMBERS = itertools.count(1)


def _namespace(server: ApiServer) -> Namespace:
    name = f"case-{next(_NUMBERS)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    body = {"metadata": {"name": name, "labels": labels}}
    status, answer = server.request("POST", "/api/v1/namespaces", body)
    assert status == 201, answer
    return Namespace(server, name)


@pytest.fixture
def namespace(server: ApiServer) -> Namespace:
    return _namespace(server)


@pytest.fixture
def another(server: ApiServer) -> Namespace:
    return _namespace(server)


@pytest.fixture
def prober() -> PlayedProber:
    return PlayedProber()


@pytest.fixture
def operating(server: ApiServer, namespace: Namespace, prober: PlayedProber) -> Operating:
    """Start the operator for the test's namespace."""

    def start(**changed: object) -> RunningOperator:
        fields = {
            "policy": resources.POLICY,
            "namespaces": (namespace.name,),
            "metrics_port": 0,
            "health_port": 0,
            "kubeconfig": str(server.kubeconfig(apiserver.OPERATOR)),
        }
        return RunningOperator(Settings(**{**fields, **changed}), prober)  # type: ignore[arg-type]

    return start
