"""Brings the demo's world up: Kubernetes, images, storage, the operator and one HypicCluster.

Each step only does what is missing, so that a second run, or one after an interruption, goes on
from where things are.
"""

import json
import time
from pathlib import Path

from .. import toolchain
from ..cluster import up
from ..errors import FailedError
from ..images import build, tag
from ..settings import Settings
from ..storage import publish
from . import conditions
from .kube import Helm, Kubectl
from .say import say

NAME = "demo"
NAMESPACE = "hypic-demo"
RELEASE = "hypic"
OPERATOR_NAMESPACE = "hypic-system"
MANIFEST = Path(__file__).with_name("cluster.yaml")
READY_WITHIN_S = 900.0
POLL_S = 1.0


def namespace_manifest(name: str) -> str:
    """A namespace that admits only pods of the restricted profile."""
    profile = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    metadata = {"name": name, "labels": profile}
    return json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def admit(kubectl: Kubectl, name: str) -> None:
    """Make a namespace, once an earlier one of that name is gone."""
    found = kubectl.run(
        "get", "namespace", name, "--ignore-not-found", "-o", "jsonpath={.status.phase}"
    )
    if found == "Terminating":
        say(f"waiting until the earlier namespace {name} is gone")
        kubectl.run("wait", "--for=delete", f"namespace/{name}", "--timeout=5m")
    kubectl.apply(namespace_manifest(name))


def set_up(settings: Settings, namespace: str) -> Kubectl:
    """Kubernetes, images, storage, operator and HypicCluster, each only as far as it is missing."""
    up.up(settings)
    kubectl = Kubectl(toolchain.program(settings, "kubectl"), settings.kubeconfig, namespace)
    admit(kubectl, OPERATOR_NAMESPACE)
    admit(kubectl, namespace)
    publish.publish(settings, namespace)
    build.images(settings)
    images_tag = tag.tag(settings.repository)
    helm_path = toolchain.program(settings, "helm")
    helm = Helm(helm_path, settings.kubeconfig, OPERATOR_NAMESPACE)
    say(f"helm upgrade --install {RELEASE} charts/hypic-operator")
    image = {"image.repository": "localhost/hypic/operator", "image.tag": images_tag}
    helm.install(RELEASE, "charts/hypic-operator", image)
    for said in kubectl.apply(MANIFEST.read_text().replace("TAG", images_tag)).splitlines():
        say(f"kubectl apply: {said}")
    return kubectl


def wait_until_ready(kubectl: Kubectl) -> None:
    """Show what the conditions say as it changes, until the cluster answers with tokens."""
    started = time.monotonic()
    say(f"waiting until HypicCluster {NAME} is ready; engines take about a minute to start")
    before: conditions.Words = {}
    while (waited_s := time.monotonic() - started) < READY_WITHIN_S:
        now, ready = look(kubectl)
        for line in conditions.changes(before, now):
            say(f"{waited_s:6.1f} s  {line}")
        before = now
        if ready:
            return
        time.sleep(POLL_S)
    raise FailedError(
        f"HypicCluster {NAME} was not ready after {READY_WITHIN_S:.0f} s. The last it said:\n"
        + "\n".join(conditions.changes({}, before))
    )


def look(kubectl: Kubectl) -> tuple[conditions.Words, bool]:
    """What the conditions say, and whether the cluster is ready; an API server may be away."""
    try:
        resource = kubectl.get("hypiccluster", NAME)
    except FailedError as error:
        return {"The API server does not answer:": str(error).splitlines()[-1]}, False
    return conditions.words(resource), conditions.is_ready(resource)
