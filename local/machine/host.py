"""Looks at and changes the machine around the cluster: bridge, kernel settings, control groups."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..cluster.core import names
from ..cluster.core.config import Facts
from ..shell import attempt, run
from .process import BOOT_ID

CAP_SYS_RESOURCE = 24
CGROUPS = Path("/sys/fs/cgroup")
# Kubelet, kube-proxy and the bridge plugin set these; ``down`` puts back what was there.
KERNEL_SETTINGS = (
    "net/ipv4/ip_forward",
    "net/ipv4/conf/all/forwarding",
    "net/ipv4/conf/all/route_localnet",
    "net/bridge/bridge-nf-call-iptables",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
WANTED_SETTINGS = {"net/ipv4/ip_forward": "1", "net/bridge/bridge-nf-call-iptables": "1"}


def facts() -> Facts:
    """What the parts have to know about this machine."""
    return Facts(
        may_raise_priority=_has_capability(CAP_SYS_RESOURCE),
        bridge_filtered=Path("/proc/sys/net/bridge/bridge-nf-call-iptables").exists(),
        nameservers=parse_nameservers(_text(Path("/etc/resolv.conf"))),
    )


def parse_nameservers(resolv_conf: str) -> tuple[str, ...]:
    """IPv4 name servers that a process in another address space could ask too."""
    found = re.findall(r"^nameserver\s+(\d+\.\d+\.\d+\.\d+)\s*$", resolv_conf, re.MULTILINE)
    return tuple(found)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _has_capability(number: int) -> bool:
    effective = re.search(r"^CapEff:\s*([0-9a-f]+)", _text(Path("/proc/self/status")), re.MULTILINE)
    return effective is not None and bool(int(effective.group(1), 16) >> number & 1)


def has_device(name: str) -> bool:
    """Whether a network device of this name is there."""
    return attempt(["ip", "link", "show", "dev", name]).returncode == 0


def network() -> str:
    """Which network namespace this is, also after another boot."""
    return f"{Path('/proc/self/ns/net').stat().st_ino} {BOOT_ID.read_text().strip()}"


def make_bridges() -> None:
    """One for the pods, and an empty one that gives the node an address reachable from pods."""
    for bridge in (names.POD_BRIDGE, names.NODE_BRIDGE):
        if not has_device(bridge):
            run(["ip", "link", "add", bridge, "type", "bridge"])
    run(["ip", "address", "replace", f"{names.NODE_IP}/32", "dev", names.NODE_BRIDGE])
    run(["ip", "link", "set", names.NODE_BRIDGE, "up"])
    # Until kube-proxy knows a Service, a request to it must not leave by the default route.
    run(["ip", "route", "replace", names.SERVICE_CIDR, "dev", names.NODE_BRIDGE])


def delete_devices() -> None:
    """Remove both bridges and what is still attached to the pods' one."""
    if has_device(names.POD_BRIDGE):
        shown = run(["ip", "-json", "link", "show", "master", names.POD_BRIDGE])
        for port in json.loads(shown or "[]"):
            attempt(["ip", "link", "delete", "dev", port["ifname"]])
    for bridge in (names.POD_BRIDGE, names.NODE_BRIDGE):
        if has_device(bridge):
            run(["ip", "link", "delete", "dev", bridge])


def read_kernel_settings() -> dict[str, str]:
    """The present values of all settings that the cluster may change."""
    paths = {name: Path("/proc/sys", name) for name in KERNEL_SETTINGS}
    return {name: _text(path).strip() for name, path in paths.items() if path.exists()}


def write_kernel_settings(values: dict[str, str]) -> None:
    """Set kernel settings; those that have the value already or are read-only here stay."""
    for name, value in values.items():
        path = Path("/proc/sys", name)
        if path.exists() and _text(path).strip() != value:
            with suppress(OSError):
                path.write_text(value)


def _cgroup_roots() -> Iterator[Path]:
    """One mounted hierarchy (version 2) or one a controller (version 1)."""
    if (CGROUPS / "cgroup.controllers").exists():
        yield CGROUPS
        return
    for path in sorted(CGROUPS.iterdir()):
        if path.is_dir() and not path.is_symlink() and (path / "cgroup.procs").exists():
            yield path


def make_cgroup(name: str) -> None:
    """Make the group under which the kubelet puts all pods, with every controller there is."""
    for controller in _text(CGROUPS / "cgroup.controllers").split():
        with suppress(OSError):  # one that this machine does not hand down
            (CGROUPS / "cgroup.subtree_control").write_text(f"+{controller}")
    for root in _cgroup_roots():
        (root / name).mkdir(exist_ok=True)
        if root.name == "cpuset":
            for setting in ("cpuset.cpus", "cpuset.mems"):
                (root / name / setting).write_text((root / setting).read_text())


def cgroup_processes(name: str) -> set[int]:
    """Ids of all processes in the pods of this cluster."""
    found: set[int] = set()
    for root in _cgroup_roots():
        # Groups vanish while they are walked; os.walk passes over those.
        for folder, _, _ in os.walk(root / name):
            found.update(int(word) for word in _text(Path(folder, "cgroup.procs")).split())
    return found - {0}


def try_delete_cgroup(name: str) -> bool:
    """Remove the group and those below it; False when one is not empty yet."""
    for root in _cgroup_roots():
        for folder, _, _ in os.walk(root / name, topdown=False):
            with suppress(OSError):
                Path(folder).rmdir()
    return not any((root / name).exists() for root in _cgroup_roots())
