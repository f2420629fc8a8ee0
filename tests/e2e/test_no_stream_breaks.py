"""Story: whatever is changed, and in whatever order, a client that reads a stream reads it whole.

`make soak` makes a hundred changes; HYPIC_CHANGES says otherwise. The last line counts the streams.
"""

import json
import os
import random
import time
from pathlib import Path

import pytest

from local.demo.install import NAME

from .streams import Clients
from .world import OPERATOR_NAMESPACE, ROOT, condition, engines, until

CHANGES = int(os.environ.get("HYPIC_CHANGES", "10"))
SEED = int(os.environ.get("HYPIC_SEED", "6"))
SETTLED_WITHIN_S = 900.0
OPERATOR_PODS = "app.kubernetes.io/component=operator"
WRITTEN = ROOT / "build" / "streams.txt"


class Changes:
    """What people, nodes and clusters do to a HypicCluster of two engines and two routers."""

    def __init__(self, world, kubectl, chance):
        self._world = world
        self._kubectl = kubectl
        self._chance = chance
        self._count = 0

    def scale(self):
        """From two engines to one, or back."""
        live = self._kubectl.get("hypicrole", f"{NAME}-prefill")["spec"]["replicas"]
        number = 1 if live == 2 else 2
        self._kubectl.run("scale", "hypicrole", f"{NAME}-prefill", f"--replicas={number}")
        return f"scaled to {number}"

    def roll(self):
        """A change of what engines do, while engines of the old kind answer."""
        self._count += 1
        note = {"annotations": {"example.test/change": str(self._count)}}
        self._patch({"spec": {"prefill": {"template": note}}})
        return "new revision"

    def evict(self):
        """An engine is evicted, as by a node that is drained: asked until the budget allows it."""
        which = self._chance.random()
        pod, uid = until(
            lambda: self._evicted(which), within_s=SETTLED_WITHIN_S, what="an engine may be evicted"
        )
        until(
            lambda: engines(self._kubectl, NAME).get(pod) != uid,
            within_s=60,
            what=f"{pod} is leaving",
        )
        return f"evicted {pod}"

    def _evicted(self, which):
        pods = sorted(engines(self._kubectl, NAME).items())
        if not pods:
            return None
        pod, uid = pods[int(which * len(pods))]
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": self._kubectl.namespace},
        }
        path = f"/api/v1/namespaces/{self._kubectl.namespace}/pods/{pod}/eviction"
        self._kubectl.run("create", "--raw", path, "-f", "-", text_in=json.dumps(body))
        return pod, uid

    def route(self):
        """The routers are replaced one by one."""
        now = self._kubectl.get("hypiccluster", NAME)["spec"]["router"]["policy"]
        policy = "least_load" if now == "segment" else "segment"
        self._patch({"spec": {"router": {"policy": policy}}})
        return f"routers choose by {policy}"

    def kill(self):
        """Both operators die without a chance to say goodbye."""
        system = self._world.kubectl(OPERATOR_NAMESPACE)
        system.run("delete", "pods", "-l", OPERATOR_PODS, "--force", "--grace-period=0")
        return "killed the operators"

    def settled(self):
        """Whether everything is as the spec asks, and an operator has looked at it."""
        operators = self._world.kubectl(OPERATOR_NAMESPACE).get("deployment", "hypic-operator")
        return (
            operators["status"].get("availableReplicas", 0) > 0
            and condition(self._kubectl, NAME).get("status") == "True"
            and condition(self._kubectl, NAME, "Progressing").get("reason") == "Settled"
        )

    def _patch(self, body):
        merge = ["--type=merge", "-p", json.dumps(body)]
        self._kubectl.run("patch", "hypiccluster", NAME, *merge)


@pytest.fixture
def cluster(world, demo_kubectl):
    """The demo's cluster with time to drain, put back at the end."""
    before = demo_kubectl.get("hypiccluster", NAME)["spec"]
    patch = ["patch", "hypiccluster", NAME, "--type=merge", "-p"]
    demo_kubectl.run(*patch, json.dumps({"spec": {"drain": {"timeoutSeconds": 300}}}))
    yield demo_kubectl
    demo_kubectl.run("scale", "hypicrole", f"{NAME}-prefill", "--replicas=2")
    # The engines' annotations stay as they are: taking them back would be one more roll.
    back = {"router": before["router"], "drain": before["drain"]}
    demo_kubectl.run(*patch, json.dumps({"spec": back}))
    settled = Changes(world, demo_kubectl, random.Random(SEED)).settled
    until(settled, within_s=SETTLED_WITHIN_S, what="put back")


def test_no_stream_breaks(world, cluster, front, capsys):
    chance = random.Random(SEED)
    changes = Changes(world, cluster, chance)
    kinds = [changes.scale, changes.roll, changes.evict, changes.route, changes.kill]
    until(changes.settled, within_s=SETTLED_WITHIN_S, what="settled before the first change")
    started_s = time.monotonic()
    with Clients(front, SEED) as clients:
        until(lambda: clients.started, within_s=120, what="a stream has started")
        for number in range(CHANGES):
            made = kinds[number] if number < len(kinds) else chance.choice(kinds)
            with capsys.disabled():
                said = f"{time.monotonic() - started_s:6.0f} s  change {number + 1}: {made()}"
                print(said, flush=True)
            # Some changes come while the one before is still under way.
            if chance.random() < 0.7:
                until(changes.settled, within_s=SETTLED_WITHIN_S, what=said)
        until(changes.settled, within_s=SETTLED_WITHIN_S, what="settled after the last change")
    line = f"streams: {clients.started} started, {len(clients.broken)} broken"
    WRITTEN.parent.mkdir(exist_ok=True)
    Path(WRITTEN).write_text(f"{line}\n")
    with capsys.disabled():
        print(f"not begun: {dict(clients.refusals)}\n{line}", flush=True)
    assert clients.broken == []
    assert clients.started > CHANGES
