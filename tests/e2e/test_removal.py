"""Story: deleting a HypicCluster removes everything within a minute, the operator there or not."""

import time

import pytest

from .spare import SPARE, install
from .world import (
    OPERATOR,
    OPERATOR_NAMESPACE,
    children,
    engines,
    manifest,
    until,
    wait_until_ready,
)

WITHIN_S = 60


@pytest.fixture
def serving(world, spare_kubectl):
    """The spare cluster, serving."""
    install(world, world.image("engine"), test_timeout_s=120)
    wait_until_ready(spare_kubectl, SPARE, within_s=600)
    return spare_kubectl


@pytest.fixture
def loading(world, spare_kubectl):
    """The spare cluster, its engine's process begun and its model not loaded."""
    install(world, world.image("engine"), test_timeout_s=120)

    def begun():
        for pod in engines(spare_kubectl, SPARE):
            (state,) = spare_kubectl.get("pod", pod)["status"].get("containerStatuses", [{}])
            return "running" in state.get("state", {}) and not state["started"]
        return False

    until(begun, within_s=120, what="the engine loads")
    return spare_kubectl


@pytest.fixture
def operator_away(world, serving):
    """The operator scaled to zero once the cluster serves, and back afterwards."""
    assert children(serving, SPARE)
    system = world.kubectl(OPERATOR_NAMESPACE)
    system.run("scale", OPERATOR, "--replicas=0")
    selector = "app.kubernetes.io/component=operator"
    until(
        lambda: not system.get("pods", "-l", selector)["items"],
        within_s=120,
        what="the operator is away",
    )
    yield
    system.run("scale", OPERATOR, "--replicas=1")
    system.run("rollout", "status", OPERATOR, "--timeout=3m")


def assert_all_goes(kubectl, cluster, *how):
    assert children(kubectl, cluster)
    started = time.monotonic()
    kubectl.run("delete", "hypiccluster", cluster, "--wait", f"--timeout={WITHIN_S}s", *how)
    until(lambda: not children(kubectl, cluster), within_s=WITHIN_S, what="all children are gone")
    assert time.monotonic() - started < WITHIN_S


@pytest.mark.usefixtures("operator_away")
def test_a_serving_cluster_goes_although_the_operator_is_away(serving):
    assert_all_goes(serving, SPARE)


def test_engines_that_still_load_go_at_once_and_not_after_the_time_for_streams(loading):
    assert loading.get("hypiccluster", SPARE)["spec"]["drain"]["timeoutSeconds"] >= WITHIN_S
    assert_all_goes(loading, SPARE)


@pytest.mark.parametrize("cascade", ["foreground", "background"])
def test_a_cluster_that_never_started_goes(cascade, spare_kubectl):
    template = {"engine": {"image": "localhost/hypic/engine:no-such-tag", "resources": {}}}
    spare_kubectl.apply(manifest("unstarted", prefill={"template": template}))
    until(
        lambda: any(name.startswith("Pod/") for name in children(spare_kubectl, "unstarted")),
        within_s=60,
        what="its pods are made",
    )
    assert_all_goes(spare_kubectl, "unstarted", f"--cascade={cascade}")
