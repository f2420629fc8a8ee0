"""Several operators installed in one cluster: in each namespace one of them acts."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from hypic_operator.core import names
from hypic_operator.settings import Settings

from ...support import apiserver, resources
from ...support.apiserver import ApiServer
from ...support.playing import MERGE, Namespace, PlayedProber, RunningOperator
from ...support.waiting import eventually
from .conftest import grant, install


@pytest.fixture
def alone() -> Iterator[ApiServer]:
    """An API server of which an operator may serve all namespaces."""
    with apiserver.running() as found:
        install(found)
        grant(found)
        for name in ("team", "rest"):
            body = {"metadata": {"name": name}}
            assert found.request("POST", "/api/v1/namespaces", body)[0] == 201
        yield found


def _operator(server: ApiServer, image: str, lease: str, *namespaces: str) -> RunningOperator:
    """One installation, known by the image that it gives to routers."""
    settings = Settings(
        replace(resources.POLICY, router_image=image),
        namespaces=namespaces,
        lease=lease,
        metrics_port=0,
        health_port=0,
        kubeconfig=str(server.kubeconfig(apiserver.OPERATOR)),
    )
    return RunningOperator(settings, PlayedProber())


def _image(namespace: Namespace) -> str:
    made = namespace.get("Deployment", "demo")
    containers = made["spec"]["template"]["spec"]["containers"] if made else [{"image": ""}]
    return str(containers[0]["image"])


def _until_made_by(image: str, namespace: Namespace) -> None:
    eventually(lambda: _image(namespace), until=lambda seen: seen == image, within_s=60)


def test_an_operator_of_all_namespaces_leaves_one_to_its_own_dynamo_4573(
    alone: ApiServer,
) -> None:
    team, rest = Namespace(alone, "team"), Namespace(alone, "rest")
    with _operator(alone, "own:1", "team/op", "team") as own:
        team.create(resources.manifest())
        _until_made_by("own:1", team)
        own.rest(team, "demo")
        with _operator(alone, "all:1", "rest/op") as everywhere:
            before = team.versions_of_children("demo")
            everywhere.look(team, "demo")
            assert everywhere.writes == {}
            assert team.versions_of_children("demo") == before
            rest.create(resources.manifest())
            _until_made_by("all:1", rest)
            own.end()
            assert _image(team) == "own:1"
            path = f"/apis/coordination.k8s.io/v1/namespaces/team/leases/{names.SCOPE_LEASE}"
            soon = {"spec": {"leaseDurationSeconds": 1}}
            assert alone.request("PATCH", path, soon, content_type=MERGE)[0] == 200
            _until_made_by("all:1", team)


def test_of_two_operators_of_the_same_namespace_the_first_acts(alone: ApiServer) -> None:
    team = Namespace(alone, "team")
    with (
        _operator(alone, "first:1", "team/one", "team") as first,
        _operator(alone, "second:1", "team/two", "team") as second,
    ):
        team.create(resources.manifest())
        eventually(lambda: _image(team))
        acts, waits = (first, second) if _image(team) == "first:1" else (second, first)
        waits.look(team, "demo")
        assert (waits.writes, acts.writes != {}) == ({}, True)


def test_another_operator_of_the_same_installation_goes_on_at_once(alone: ApiServer) -> None:
    team = Namespace(alone, "team")
    team.create(resources.manifest())
    with _operator(alone, "own:1", "team/op", "team"):
        _until_made_by("own:1", team)
    with _operator(alone, "own:2", "team/op", "team"):
        _until_made_by("own:2", team)
