"""Ends the cluster and takes away every trace of it but the caches."""

import json

from .. import lock, preflight
from ..errors import FailedError
from ..machine import firewall, host, mounts, process, strays
from ..progress import say, step
from ..settings import Settings
from ..shell import wait_until
from . import node, pods

GRACE_S = 10.0
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
            pods.end_all(settings)
            _end(settings, "containerd")
        with step("remove mounts, devices, rules and files"):
            _remove(settings)
        _require_nothing_left(settings)


def _end(settings: Settings, name: str) -> None:
    record = process.read(settings.run, name)
    if record is not None:
        process.end(record, grace_s=GRACE_S)
        (settings.run / f"{name}.json").unlink()


def _remove(settings: Settings) -> None:
    mounts.unmount_all(settings.state)
    found = json.loads(settings.found.read_text()) if settings.found.exists() else {}
    if found.get("network") == host.network():
        host.delete_devices()
        firewall.remove()
        host.write_kernel_settings(found["kernel"])
    # Else all this went with the network namespace, or the boot, in which the cluster ran.
    wait_until(
        lambda: host.try_delete_cgroup(settings.cgroup),
        what="control groups go",
        deadline_s=GONE_DEADLINE_S,
    )
    strays.remove(settings.state, made_here=found.get("folders", []))
    mounts.remove_tree(settings.state)


def _require_nothing_left(settings: Settings) -> None:
    left = [
        *(f"process {pid}" for pid in node.shims(settings)),
        *(f"mount {point}" for point in mounts.below(settings.state)),
    ]
    if left:
        raise FailedError(f"left behind: {', '.join(left)}")
    say("nothing of the cluster is left; caches are kept")
