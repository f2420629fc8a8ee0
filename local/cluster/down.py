"""Ends the cluster and takes away every trace of it but the caches."""

import json
from collections.abc import Callable
from pathlib import Path

from .. import preflight
from ..errors import FailedError
from ..progress import say, step
from ..settings import Settings
from ..shell import attempt, wait_until
from . import firewall, host, lock, mounts, node, process, strays

GRACE_S = 10.0
POD_GRACE_S = 2.0
GONE_DEADLINE_S = 15.0
# Those that would start pods or rules again go first, the store last.
ORDER = ("kubelet", "controllers", "scheduler", "proxy", "dns", "apiserver", "etcd")


def down(settings: Settings) -> None:
    """End everything; fine when nothing runs or only left-overs lie about."""
    preflight.require_root()
    with lock.exclusive(settings):
        if not settings.state.exists():
            say("nothing is up")
            return
        with step("end the control plane and the kubelet"):
            for name in ORDER:
                _end(settings, name)
        with step("end the pods"):
            _end_pods(settings)
            _end(settings, "containerd")
        with step("remove mounts, devices, rules and files"):
            _remove(settings)
        _require_nothing_left(settings)


def _end(settings: Settings, name: str) -> None:
    record = process.read(settings.run, name)
    if record is not None:
        process.end(record, grace_s=GRACE_S)
        (settings.run / f"{name}.json").unlink()


def _end_pods(settings: Settings) -> None:
    """Containers first, so that their shims reap them; then the shims."""
    addresses = _shim_sockets(settings)
    for members in (lambda: host.cgroup_processes(settings.cgroup), lambda: node.shims(settings)):
        for pid in members():
            process.kill(pid)
        _wait_gone(members)
    for address in addresses:
        address.unlink(missing_ok=True)


def _wait_gone(members: Callable[[], object]) -> None:
    wait_until(lambda: not members(), what="pods end", deadline_s=GONE_DEADLINE_S)


def _shim_sockets(settings: Settings) -> set[Path]:
    """Sockets of our shims, which lie in a folder that all containerds of a machine share."""
    bundles = settings.state / "containerd" / "state" / "io.containerd.runtime.v2.task"
    written = [path.read_text().strip() for path in bundles.glob("*/*/address")]
    return {Path(text.removeprefix("unix://")) for text in written}


def _remove(settings: Settings) -> None:
    attempt(["umount", "--lazy", "--recursive", settings.state / "kubelet"])
    mounts.unmount_all(settings.state)
    host.delete_devices()
    firewall.remove()
    wait_until(
        lambda: host.try_delete_cgroup(settings.cgroup),
        what="control groups go",
        deadline_s=GONE_DEADLINE_S,
    )
    found = json.loads(settings.found.read_text()) if settings.found.exists() else {}
    host.write_kernel_settings(found.get("kernel", {}))
    strays.remove(settings.state, made_here=found.get("folders", []))
    mounts.remove_tree(settings.state)


def _require_nothing_left(settings: Settings) -> None:
    left = [
        *(f"process {pid}" for pid in node.shims(settings)),
        *(f"mount {point}" for point in mounts.below(settings.state)),
        *(f"iptables chain {chain}" for chain in firewall.remaining()),
    ]
    if left:
        raise FailedError(f"left behind: {', '.join(left)}")
    say("nothing of the cluster is left; caches are kept")
