"""Uses a cluster that was not made here; never changes it."""

from ..errors import RefusedError
from ..progress import say
from ..settings import Settings
from . import kube


def require_reachable(settings: Settings) -> None:
    """Say which cluster is used; refuse one that does not answer."""
    path = settings.existing_kubeconfig
    if path is None or not path.exists():
        raise RefusedError(f"no kubeconfig at {path}: correct KUBECONFIG or unset it")
    answer = kube.try_kubectl(settings, "version", "--output=json", "--request-timeout=10s")
    if answer.returncode != 0:
        last = (answer.stderr.strip().splitlines() or ["no answer"])[-1]
        raise RefusedError(
            f"the cluster of {path} does not answer: {last}\n"
            "Start it, or unset KUBECONFIG to make one on this machine"
        )
    nodes = kube.get(settings, "nodes") or {"items": []}
    say(f"using the cluster of {path}, {len(nodes['items'])} nodes; nothing was started here")
