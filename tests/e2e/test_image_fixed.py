"""Story: an engine image that does not exist is told in seconds; correcting it is enough."""

import json

import httpx
import pytest

from .spare import KEY, SPARE, SPARE_NAMESPACE, install, values
from .world import condition, engines, until, wait_until_ready

MISSING = "localhost/hypic/engine:no-such-tag"


@pytest.fixture(scope="module")
def broken(world, spare_kubectl):
    """The spare cluster with an image that is nowhere."""
    install(world, MISSING, test_timeout_s=5)
    return spare_kubectl


@pytest.fixture(scope="module")
def corrected(world, broken):
    """The same cluster once its image was corrected, and nothing else done."""
    install(world, world.image("engine"), test_timeout_s=120)
    wait_until_ready(broken, SPARE, within_s=600)
    return broken


def test_a_missing_image_makes_the_cluster_unready_with_the_pods_own_reason(broken):
    ready = until(
        lambda: (
            found
            if (found := condition(broken, SPARE)).get("reason") == "ImagePullBackOff"
            else None
        ),
        within_s=30,
        what="the reason is the pod's",
    )
    assert ready["status"] == "False"
    assert MISSING in ready["message"]


def test_helm_test_fails_when_no_token_comes(world, broken):
    done = world.helm(SPARE_NAMESPACE, "test", SPARE, "--timeout", "2m")
    assert done.returncode != 0
    said = broken.run("logs", f"{SPARE}-test")
    assert "no token of tiny-qwen3.5 within 5 s" in said


def test_a_corrected_image_is_enough(world, corrected):
    assert condition(corrected, SPARE, "Serving")["reason"] == "TokenReceived"
    until(
        lambda: condition(corrected, SPARE, "Progressing").get("reason") == "Settled",
        within_s=120,
        what="nothing is left of the revision with the wrong image",
    )
    (engine,) = engines(corrected, SPARE)
    assert corrected.get("pod", engine)["spec"]["containers"][0]["image"] == world.image("engine")


@pytest.mark.usefixtures("corrected")
def test_helm_test_passes_when_a_token_comes(world):
    done = world.helm(SPARE_NAMESPACE, "test", SPARE, "--timeout", "3m", "--logs")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok: tiny-qwen3.5 answered with a token" in done.stdout
    assert "Warning" not in done.stderr


def test_only_who_has_a_key_is_answered_and_the_operator_has_one_of_its_own(corrected):
    address = corrected.get("service", SPARE)["spec"]["clusterIP"]
    url = f"http://{address}/v1/models"
    sent = ({}, {"Authorization": "Bearer sk-wrong"}, {"Authorization": f"Bearer {KEY}"})
    codes = [httpx.get(url, headers=headers, trust_env=False).status_code for headers in sent]
    assert codes == [401, 401, 200]
    assert condition(corrected, SPARE, "Serving")["status"] == "True"


def test_helm_test_fails_for_a_model_that_is_not_served(world, corrected):
    given = [*values(world, world.image("engine"), test_timeout_s=30), "--set", "model.name=other"]
    only = ["--show-only", "templates/test-front-door.yaml"]
    rendered = world.helm(SPARE_NAMESPACE, "template", SPARE, "charts/hypic-cluster", *only, *given)
    assert rendered.returncode == 0, rendered.stderr
    corrected.run("delete", "pod", f"{SPARE}-test", "--ignore-not-found", "--wait")
    corrected.apply(rendered.stdout)
    until(
        lambda: corrected.get("pod", f"{SPARE}-test")["status"]["phase"] == "Failed",
        within_s=60,
        what="the test's pod fails",
    )
    assert "no token of other" in corrected.run("logs", f"{SPARE}-test")


def test_what_git_holds_shows_no_difference_once_the_cluster_has_settled(world, corrected):
    given = values(world, world.image("engine"), test_timeout_s=120)
    only = ["--show-only", "templates/hypiccluster.yaml"]
    rendered = world.helm(SPARE_NAMESPACE, "template", SPARE, "charts/hypic-cluster", *only, *given)
    live = corrected.get("hypiccluster", SPARE)
    dry = ["apply", "--server-side", "--field-manager=git", "--force-conflicts", "-o", "json"]
    synced = json.loads(corrected.run(*dry, "--dry-run=server", "-f", "-", text_in=rendered.stdout))
    assert synced["spec"] == live["spec"]
    assert synced["metadata"]["labels"] == live["metadata"]["labels"]
    assert synced["metadata"]["generation"] == live["metadata"]["generation"]
