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
CRD = REPOSITORY / "crds" / "serving.hypic.dev_hypicclusters.yaml"
RIGHTS = REPOSITORY / "tests" / "data" / "operator" / "rights.yaml"

Operating = Callable[..., AbstractContextManager[RunningOperator]]


@pytest.fixture(scope="session")
def server() -> Iterator[ApiServer]:
    with apiserver.running() as found:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        status, answer = found.request("POST", path, yaml.safe_load(CRD.read_text()))
        assert status == 201, answer
        eventually(lambda: found.request("GET", "/apis/serving.hypic.dev/v1alpha1")[0] == 200)
        _grant(found)
        yield found


def _grant(server: ApiServer) -> None:
    """Give the operator's user exactly the rights that the chart gives it."""
    group = "rbac.authorization.k8s.io"
    base = f"/apis/{group}/v1"
    rules = yaml.safe_load(RIGHTS.read_text())
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


@pytest.fixture
def namespace(server: ApiServer) -> Namespace:
    name = f"case-{next(_NUMBERS)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    body = {"metadata": {"name": name, "labels": labels}}
    status, answer = server.request("POST", "/api/v1/namespaces", body)
    assert status == 201, answer
    return Namespace(server, name)


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
