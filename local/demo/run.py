"""`make demo`: everything from a bare machine to four documents asked about in several orders.

Sets up, asks, compares each answer with that of an engine whose cache was emptied, and ends with
one line and an exit status. The steps themselves are in the other modules of this folder.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ..errors import LocalError, RefusedError
from ..settings import Settings
from . import table
from .ask import Answer
from .compare import ask_all, compare, front_door
from .documents import DOCUMENTS
from .install import NAMESPACE, set_up, wait_until_ready
from .kube import Kubectl
from .say import say

GO_ON = """
Go on:
  export KUBECONFIG={kubeconfig} PATH={tools}:$PATH
  kubectl -n {namespace} get hypic,pods
  curl -i {url}/v1/completions \\
    -H 'Content-Type: application/json' -H 'x-hypic-explain: 1' \\
    -d '{{"model": "tiny-qwen3.5", "prompt": "A document.<<PIC_SEP>>A question?", "max_tokens": 8}}'
Remove:
  kubectl delete namespace {namespace}      # this cluster
  python3 -m local down                     # Kubernetes; what was built stays in {cache}
"""


def show(rows: Sequence[table.Row], answer: Answer) -> None:
    """The documents, the table, and what its numbers mean."""
    titles = ", ".join(f"{key} {len(text)}" for key, text in DOCUMENTS.items())
    sys.stdout.write(
        f"\nFour documents (tokens: {titles}), then a question, through the router's Service:\n\n"
        f"{table.table(rows)}\n\n"
        "Tokens are the engine's `cached_tokens`. The question is never cached, and the first 8\n"
        "tokens of each document are computed anew (the seam). The model is tiny, its weights are\n"
        f"random: its answers are noise ({answer.text[:24]!a}), but each time the same noise.\n"
    )


def go_on(kubectl: Kubectl, url: str, cache: Path) -> str:
    """What to type next."""
    return GO_ON.format(
        kubeconfig=kubectl.kubeconfig,
        tools=kubectl.path.parent,
        namespace=kubectl.namespace,
        url=url,
        cache=cache,
    )


def refuse_another_cluster(settings: Settings) -> None:
    """Before anything is done: the demo changes the cluster that it made itself, and no other."""
    if settings.existing_kubeconfig is not None:
        raise RefusedError(
            "the demo makes a cluster of its own on this machine, and KUBECONFIG or --kubeconfig "
            f"names another ({settings.existing_kubeconfig}), which stays as it is: leave that "
            "out (`env -u KUBECONFIG make demo`), or install there with Helm (docs/install.md)"
        )


def run(settings: Settings, namespace: str) -> table.Verdict:
    """The whole demo but its last line."""
    started = time.monotonic()
    kubectl = set_up(settings, namespace)
    wait_until_ready(kubectl)
    say(f"ready after {time.monotonic() - started:.1f} s")
    url = front_door(kubectl)
    answers = ask_all(kubectl, url)
    rows = compare(kubectl, answers)
    show(rows, answers[0])
    sys.stdout.write(go_on(kubectl, url, settings.cache))
    return table.verdict(rows)


def main(settings: Settings, argv: Sequence[str]) -> int:
    """Run the demo; its last line says how it ended, and so does the status."""
    parser = argparse.ArgumentParser(prog="python3 -m local demo", description=__doc__)
    parser.add_argument("namespace", nargs="?", default=NAMESPACE, help="of the HypicCluster")
    arguments = parser.parse_args(argv)
    try:
        refuse_another_cluster(settings)
        verdict = run(settings, arguments.namespace)
    except LocalError as error:
        sys.stdout.write(f"demo: failed: {error}\n")
        return 1
    sys.stdout.write(f"\n{verdict.line}\n")
    return 0 if verdict.ok else 1
