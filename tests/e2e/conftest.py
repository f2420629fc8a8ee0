"""One cluster, one demo and one spare HypicCluster for all stories of this tier.

Engines take a minute to start, so stories share them; a story that needs a cluster in another state
makes its own, or puts the shared one back.
"""

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from local.demo import compare
from local.demo.install import NAME, NAMESPACE, admit
from local.demo.kube import Kubectl
from local.errors import FailedError

from .spare import KEY, KEYS, SPARE_NAMESPACE
from .world import (
    CLUSTER_LABEL,
    OPERATOR_NAMESPACE,
    ROOT,
    World,
    demo_command,
    local,
    pods,
    until,
    wait_until_ready,
)

DEMO_NAMESPACE = "hypic-e2e-demo"
# The first demo on a machine may have to build its tools.
FIRST_DEMO_S = 3_000.0
OPERATOR_POD = "app.kubernetes.io/component=operator"


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo that has ended.

    Attributes:
        done: its exit status and what it wrote.
        killed: unique ids of the operator's pods that were killed in it.
    """

    done: subprocess.CompletedProcess[str]
    killed: frozenset[str] = frozenset()


@pytest.fixture(scope="session")
def world() -> World:
    """A running cluster with our images in it, and with room: `make demo`'s own is removed."""
    local("up")
    local("images")
    kubeconfig = Path(local("kubeconfig"))
    kubectl, helm = Path(local("tool", "kubectl")), Path(local("tool", "helm"))
    world = World(kubectl, helm, kubeconfig, local("tag"))
    _remove(world, NAMESPACE)
    return world


def _remove(world: World, namespace: str) -> None:
    kubectl = world.kubectl(namespace)
    with contextlib.suppress(FailedError):  # on a new cluster there is no such kind
        kubectl.run("delete", "hypicclusters", "--all", "--wait", "--timeout=2m")
    # A namespace that is deleted with pods in it waits half of their grace period before it looks
    # again, so they go first.
    kubectl.run("wait", "pods", "-l", CLUSTER_LABEL, "--for=delete", "--timeout=2m")
    kubectl.run("delete", "namespace", namespace, "--ignore-not-found", "--wait", "--timeout=5m")


def _kill_operator_when_the_cluster_appears(
    world: World, demo: subprocess.Popen[str]
) -> frozenset[str]:
    system, kubectl = world.kubectl(OPERATOR_NAMESPACE), world.kubectl(DEMO_NAMESPACE)

    def appeared() -> bool:
        return demo.poll() is not None or bool(kubectl.run("get", "hypiccluster", NAME))

    until(appeared, within_s=FIRST_DEMO_S, what="the demo's HypicCluster appears")
    before = pods(system, OPERATOR_POD)
    system.run("delete", "pod", "-l", OPERATOR_POD, "--force", "--grace-period=0")
    return frozenset(before.values())


@pytest.fixture(scope="session")
def first_demo(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The demo from an empty namespace, the operator killed while it makes the cluster."""
    _remove(world, DEMO_NAMESPACE)
    written = tmp_path_factory.mktemp("demo") / "stdout"
    with written.open("w") as output:
        command = demo_command(DEMO_NAMESPACE)
        demo = subprocess.Popen(command, cwd=ROOT, stdout=output, text=True)
        try:
            killed = _kill_operator_when_the_cluster_appears(world, demo)
            demo.wait(FIRST_DEMO_S)
        finally:
            demo.kill()
            demo.wait()
    done = subprocess.CompletedProcess(command, demo.returncode, written.read_text(), "")
    yield Demo(done, killed)
    _remove(world, DEMO_NAMESPACE)


@pytest.fixture(scope="session")
def demo_kubectl(world: World, first_demo: Demo) -> Kubectl:
    """Kubectl where the demo's cluster serves, however the demo itself ended."""
    assert first_demo.done.stdout, "the demo wrote nothing"
    kubectl = world.kubectl(DEMO_NAMESPACE)
    wait_until_ready(kubectl, NAME, within_s=600)
    return kubectl


@pytest.fixture(scope="session")
def front(demo_kubectl: Kubectl) -> str:
    """The front door of the demo's cluster."""
    return compare.front_door(demo_kubectl)


@pytest.fixture(scope="session")
def spare_kubectl(world: World, first_demo: Demo) -> Iterator[Kubectl]:
    """Kubectl for a restricted namespace with storage, where stories make clusters of their own."""
    assert first_demo.done.stdout, "the demo, which installs the operator, wrote nothing"
    _remove(world, SPARE_NAMESPACE)
    kubectl = world.kubectl(SPARE_NAMESPACE)
    admit(kubectl, SPARE_NAMESPACE)
    local("publish", SPARE_NAMESPACE)
    kubectl.run("create", "secret", "generic", KEYS, f"--from-literal=team={KEY}")
    yield kubectl
    _remove(world, SPARE_NAMESPACE)
