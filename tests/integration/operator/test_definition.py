"""The definition of HypicCluster comes after the operator, goes, and comes again."""

import urllib.request
from collections.abc import Iterator
from contextlib import suppress

import pytest
import yaml

from hypic_operator.settings import Settings

from ...support import apiserver, resources
from ...support.apiserver import ApiServer, free_ports
from ...support.playing import Namespace, PlayedProber, RunningOperator
from ...support.waiting import eventually
from .conftest import CRDS, DEFINITIONS, install, served


@pytest.fixture
def bare() -> Iterator[ApiServer]:
    with apiserver.running() as found:
        yield found


def _alive(port: int) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz") as answer:
        return bool(answer.status == 200)
    return False


def test_the_operator_waits_for_the_definition_and_outlives_its_removal(bare: ApiServer) -> None:
    kubeconfig = str(bare.kubeconfig())
    (port,) = free_ports(1)
    settings = Settings(resources.POLICY, metrics_port=0, health_port=port, kubeconfig=kubeconfig)
    namespace = Namespace(bare, "default")
    with RunningOperator(settings, PlayedProber()):
        eventually(lambda: _alive(port))
        install(bare)
        namespace.create(resources.manifest("first"))
        eventually(lambda: namespace.sets("first"))
        for file in CRDS.glob("*.yaml"):
            name = yaml.safe_load(file.read_text())["metadata"]["name"]
            assert bare.request("DELETE", f"{DEFINITIONS}/{name}")[0] == 200
        eventually(lambda: not served(bare))
        assert _alive(port)
        install(bare)
        namespace.create(resources.manifest("second"))
        eventually(lambda: namespace.sets("second"), within_s=40)
