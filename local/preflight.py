"""Says at once what cannot work on this machine, and what to do; changes nothing."""

import os
import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from .cluster.core.names import Listen
from .errors import RefusedError

GB = 1_000_000_000
# Measured on the first run, downloads and build caches included; together 25 GB.
NEEDS_GB = {"programs built with Go": 9, "images": 3, "the engine's environment": 13}
LONGEST_SOCKET_PATH = 100
SOCKET_SUFFIX = "/cluster/containerd/containerd.sock.ttrpc"
TCP_LISTEN, UDP_BOUND = "0A", "07"


def require_root() -> None:
    """A node mounts, makes network devices and starts a container runtime."""
    if os.geteuid() != 0:
        raise RefusedError(
            "must run as root: a node makes network devices, mounts and iptables rules. Run it "
            "with sudo, or install on the cluster that KUBECONFIG names (docs/install.md)"
        )


def require_debian() -> None:
    """containerd, runc and network plugins come from Debian packages."""
    wanted = ("containerd", "runc", "iptables")
    absent = [name for name in wanted if shutil.which(name) is None]
    if absent and shutil.which("apt-get") is None:
        raise RefusedError(
            f"no {', '.join(absent)} here and no apt-get to install them with: use Debian 12, "
            "install them by hand, or install on a cluster that exists (docs/install.md)"
        )


def require_disk(cache: Path, wanted: Iterable[str]) -> None:
    """Refuse when what is still to be made does not fit beside what is there."""
    missing = tuple(wanted)
    needed_gb = sum(NEEDS_GB[name] for name in missing)
    free_gb = shutil.disk_usage(_existing(cache)).free / GB
    if free_gb < needed_gb:
        raise RefusedError(
            f"the disk is too small: {', '.join(missing)} need about {needed_gb} GB, and {cache} "
            f"has {free_gb:.1f} GB free. Free some, or set HYPIC_CACHE to a folder on another disk"
        )


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path


def require_short_path(cache: Path) -> None:
    """A Unix socket's path fits about a hundred bytes."""
    if len(str(cache)) + len(SOCKET_SUFFIX) > LONGEST_SOCKET_PATH:
        limit = LONGEST_SOCKET_PATH - len(SOCKET_SUFFIX)
        raise RefusedError(
            f"the cache folder {cache} has too long a path for sockets in it: set HYPIC_CACHE to "
            f"one of at most {limit} characters"
        )


def parse_bound(table: str, protocol: str) -> dict[int, dict[str, int]]:
    """Port to {address in hex: socket inode} of the listeners in the text of /proc/net/tcp."""
    state = TCP_LISTEN if protocol == "tcp" else UDP_BOUND
    bound: dict[int, dict[str, int]] = {}
    for line in table.splitlines()[1:]:
        words = line.split()
        address, _, port = words[1].partition(":")
        if words[3] == state:
            bound.setdefault(int(port, 16), {})[address] = int(words[9])
    return bound


def in_the_way(listen: Listen, tables: dict[str, str]) -> int | None:
    """Inode of a socket that keeps ``listen`` from being opened; None when the way is free.

    Args:
        listen: the wanted address.
        tables: text of /proc/net/NAME for tcp, tcp6, udp and udp6.
    """
    octets = [int(word) for word in listen.ip.split(".")]
    wanted = "".join(f"{octet:02X}" for octet in reversed(octets))
    four = parse_bound(tables[listen.protocol], listen.protocol).get(listen.port, {})
    six = parse_bound(tables[f"{listen.protocol}6"], listen.protocol).get(listen.port, {})
    candidates = {**six, **four}
    for address in (wanted, "0" * 8, "0" * 32):
        if address in candidates:
            return candidates[address]
    return None


def require_ports(listens: Iterable[Listen]) -> None:
    """Refuse when another program has a port; name the program."""
    tables = {name: _read(Path("/proc/net", name)) for name in ("tcp", "tcp6", "udp", "udp6")}
    taken = [
        f"{listen.protocol} {listen.ip}:{listen.port} is used by {_owner(inode)}"
        for listen in listens
        if (inode := in_the_way(listen, tables)) is not None
    ]
    if taken:
        raise RefusedError(
            f"ports in use: {'; '.join(taken)}. End that program, or set KUBECONFIG to use the "
            "cluster it belongs to"
        )


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _owner(inode: int) -> str:
    """Name and id of the process that holds a socket."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended, or belongs to another user
            links = {str(link.readlink()) for link in (process / "fd").iterdir()}
            if f"socket:[{inode}]" in links:
                return f"{(process / 'comm').read_text().strip()} (process {process.name})"
    return "a process that cannot be seen from here"


def untested(cgroups: Path) -> str | None:
    """What this machine has that no test of ours has run on; None when there is nothing."""
    if (cgroups / "cgroup.controllers").exists():
        return (
            "this machine has control groups of version 2, on which this tool has not been "
            "tested; if pods do not start, please report what `python3 -m local status` says"
        )
    return None


def require_kernel() -> None:
    """Overlay mounts are what container images are made of here."""
    listed = _read(Path("/proc/filesystems"))
    if listed and not re.search(r"\boverlay$", listed, re.MULTILINE):
        raise RefusedError("the kernel has no overlay file system: run `modprobe overlay` first")
