"""Story: one engine reads prompts and another answers them, also while both are replaced."""

import json
import re
from collections.abc import Iterator

import httpx
import pytest
import yaml

from local.demo.documents import SEPARATOR
from local.demo.kube import Kubectl

from .spare import VALUES
from .streams import MODEL, Clients
from .world import World, condition, manifest, until, wait_until_ready

PAIR = "pair"
WITHIN_S = 900
DOCUMENTS = [f"Ledger {number}. " + "Nothing was entered on this day. " * 9 for number in range(3)]
# A pair is named by its two pods, and each pod by its role and revision.
ENGINES = re.compile(r"pair-prefill-(?P<prefill>\w+)-\d\+pair-decode-(?P<decode>\w+)-\d")


@pytest.fixture(scope="module")
def pair(world: World, spare_kubectl: Kubectl) -> Iterator[Kubectl]:
    """A HypicCluster of one prefill and one decode engine, and room for two more in a roll."""
    spare_kubectl.run("delete", "hypiccluster", "--all", "--wait", "--timeout=2m")
    template = yaml.safe_load(VALUES.read_text())["prefill"]["template"]
    template["engine"]["image"] = world.image("engine")
    role = {"replicas": 1, "template": template}
    spec = {"prefill": role, "decode": role, "router": {"replicas": 1}}
    spare_kubectl.apply(manifest(PAIR, **spec, drain={"timeoutSeconds": 300}))
    wait_until_ready(spare_kubectl, PAIR, within_s=WITHIN_S)
    yield spare_kubectl
    spare_kubectl.run("delete", "hypiccluster", PAIR, "--wait", "--timeout=2m")


def front_of(kubectl: Kubectl) -> str:
    return f"http://{kubectl.get('service', PAIR)['spec']['clusterIP']}"


def asked(front: str, order: tuple[int, ...]) -> tuple[str, int, re.Match[str]]:
    """Text of an answer about documents in some order, cached tokens, and who gave it."""
    prompt = SEPARATOR.join(["Read these.", *(DOCUMENTS[number] for number in order), "Which?"])
    body = {"model": MODEL, "prompt": prompt, "max_tokens": 8, "temperature": 0}
    response = httpx.post(
        f"{front}/v1/completions",
        json=body | {"ignore_eos": True},
        headers={"x-hypic-explain": "1"},
        timeout=120,
        trust_env=False,
    )
    assert response.status_code == 200, response.text
    answer, engines = response.json(), ENGINES.fullmatch(response.headers["x-hypic-engine"])
    assert engines, response.headers["x-hypic-engine"]
    details = answer["usage"]["prompt_tokens_details"] or {"cached_tokens": 0}
    return answer["choices"][0]["text"], details["cached_tokens"], engines


def test_documents_are_found_in_another_order_and_answered_by_the_other_engine(pair):
    front = front_of(pair)
    _, cold, _ = asked(front, (0, 1, 2))
    first, warm, engines = asked(front, (2, 0, 1))
    again, _, _ = asked(front, (2, 0, 1))
    assert cold < len(DOCUMENTS[0])
    assert warm >= 0.9 * sum(map(len, DOCUMENTS))
    assert first == again
    assert engines["prefill"] == engines["decode"]


def test_each_role_has_a_condition_a_count_and_a_scale_of_its_own(pair):
    for kind in ("PrefillReady", "DecodeReady", "Serving"):
        assert condition(pair, PAIR, kind)["status"] == "True"
    shown = pair.run("get", "hypic", PAIR, "--no-headers")
    assert shown.split()[3:5] == ["1/1", "1/1"]
    roles = pair.get("hypicroles", "-l", f"serving.hypic.dev/cluster={PAIR}")["items"]
    assert [each["status"]["replicas"] for each in roles] == [1, 1]


def test_a_horizontal_pod_autoscaler_of_kubernetes_reads_a_roles_number(pair):
    role = f"{PAIR}-decode"
    pair.run("autoscale", "hypicrole", role, "--min=1", "--max=3", "--cpu=80%")

    def read():
        conditions = pair.get("hpa", role).get("status", {}).get("conditions", [])
        return {each["type"]: each["reason"] for each in conditions}.get("AbleToScale")

    try:
        assert until(read, within_s=60, what="it has looked at the role") == "SucceededGetScale"
        assert pair.get("hpa", role)["status"]["currentReplicas"] == 1
    finally:
        pair.run("delete", "hpa", role)


def test_while_both_are_replaced_streams_go_on_in_pairs_of_one_revision(pair):
    front = front_of(pair)
    _, _, before = asked(front, (0, 1, 2))
    note = {"template": {"annotations": {"example.test/change": "1"}}}
    with Clients(front, seed=1, count=2) as clients:
        until(lambda: clients.started, within_s=120, what="a stream has started")
        change = json.dumps({"spec": {"prefill": note, "decode": note}})
        pair.run("patch", "hypiccluster", PAIR, "--type=merge", "-p", change)
        met = set()

        def rolled():
            _, _, engines = asked(front, (1, 2, 0))
            met.add((engines["prefill"], engines["decode"]))
            return condition(pair, PAIR, "Progressing").get("reason") == "Settled"

        until(rolled, within_s=WITHIN_S, what="both are replaced")
    old, new = before["prefill"], asked(front, (0, 1, 2))[2]["prefill"]
    assert old != new
    assert met == {(old, old), (new, new)}
    assert clients.broken == []
    assert clients.refusals == {}
