"""The real cluster of this tier, and waiting for what it will do."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from local.demo.kube import Kubectl
from local.errors import FailedError

ROOT = Path(__file__).resolve().parents[2]
OPERATOR_NAMESPACE = "hypic-system"
OPERATOR = "deployment/hypic-operator"
CLUSTER_LABEL = "serving.hypic.dev/cluster"
KINDS = (
    "statefulsets,deployments,replicasets,pods,services,endpointslices,serviceaccounts,"
    "roles,rolebindings,poddisruptionbudgets"
)

Found = TypeVar("Found")


def until(look: Callable[[], Found | None], *, within_s: float, what: str) -> Found:
    """What `look` finds, as soon as it finds something; fails with `what` past the deadline."""
    deadline = time.monotonic() + within_s
    last: object = None
    while True:
        try:
            last = look()
            if last:
                return last
        except FailedError as error:  # the API server, or what is looked for, is not there yet
            last = error
        assert time.monotonic() < deadline, f"{what}: not within {within_s:g} s, last: {last}"
        time.sleep(0.25)


@dataclass(frozen=True, slots=True)
class World:
    """A running cluster with our images in it."""

    kubectl_path: Path
    helm_path: Path
    kubeconfig: Path
    tag: str

    def kubectl(self, namespace: str) -> Kubectl:
        """Kubectl for a namespace."""
        return Kubectl(self.kubectl_path, self.kubeconfig, namespace)

    def helm(self, namespace: str, *argv: str) -> subprocess.CompletedProcess[str]:
        """One helm command, finished, whatever its outcome."""
        where = ["--kubeconfig", str(self.kubeconfig), "--namespace", namespace]
        return subprocess.run(
            [str(self.helm_path), *where, *argv],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def image(self, name: str) -> str:
        """One of our images, as the node has it."""
        return f"localhost/hypic/{name}:{self.tag}"


def local(*argv: str) -> str:
    """What a command of the local tool answers; its progress is shown as it comes."""
    command = [sys.executable, "-m", "local", *argv]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def demo_command(namespace: str) -> list[str]:
    """What `make demo` runs, in a namespace of the tests' own."""
    return [sys.executable, "-m", "local", "demo", namespace]


def condition(kubectl: Kubectl, cluster: str, kind: str = "Ready") -> dict[str, Any]:
    """One condition of a HypicCluster, if it is about the present spec; empty before."""
    resource = kubectl.get("hypiccluster", cluster)
    status = resource.get("status", {})
    if status.get("observedGeneration") != resource["metadata"]["generation"]:
        return {}
    return next((each for each in status["conditions"] if each["type"] == kind), {})


def wait_until_ready(kubectl: Kubectl, cluster: str, *, within_s: float) -> None:
    """The cluster answers with tokens, and its status is about the present spec.

    Fails with the reason that its condition gives.
    """

    def ready() -> bool:
        found = condition(kubectl, cluster)
        if found.get("status") != "True":
            raise FailedError(f"{found.get('reason')}: {found.get('message')}")
        return True

    until(ready, within_s=within_s, what=f"{cluster} ready")


def children(kubectl: Kubectl, cluster: str) -> list[str]:
    """Everything that was made for a HypicCluster, as kind/name."""
    items = kubectl.get(KINDS, "-l", f"{CLUSTER_LABEL}={cluster}")["items"]
    return sorted(f"{item['kind']}/{item['metadata']['name']}" for item in items)


def pods(kubectl: Kubectl, selector: str) -> dict[str, str]:
    """Unique ids by name of the pods that are not leaving."""
    items = kubectl.get("pods", "-l", selector)["items"]
    return {
        item["metadata"]["name"]: item["metadata"]["uid"]
        for item in items
        if "deletionTimestamp" not in item["metadata"]
    }


def engines(kubectl: Kubectl, cluster: str) -> dict[str, str]:
    """Unique ids by name of a cluster's engines."""
    return pods(kubectl, f"{CLUSTER_LABEL}={cluster},serving.hypic.dev/role")


def routers(kubectl: Kubectl, cluster: str) -> dict[str, str]:
    """Unique ids by name of a cluster's routers."""
    return pods(kubectl, f"{CLUSTER_LABEL}={cluster},app.kubernetes.io/component=router")


def manifest(cluster: str, **spec: Any) -> str:
    """A HypicCluster of the tiny model; what is given replaces fields of the spec."""
    source = {"pvc": {"claimName": "hypic-models", "path": "tiny-qwen3.5"}}
    return json.dumps(
        {
            "apiVersion": "serving.hypic.dev/v1alpha1",
            "kind": "HypicCluster",
            "metadata": {"name": cluster},
            "spec": {"model": {"name": "tiny-qwen3.5", "source": source}} | spec,
        }
    )
