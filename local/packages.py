"""Debian packages: which program comes from which, and installing what is missing."""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import RefusedError
from .progress import step
from .shell import attempt, run

PACKAGE_OF = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "iptables-save": "iptables",
    "ip": "iproute2",
    "conntrack": "conntrack",
    "socat": "socat",
    "openssl": "openssl",
    "busybox": "busybox-static",
    "docker": "docker.io",
    "dockerd": "docker.io",
    "debootstrap": "debootstrap",
    "promtool": "prometheus",
    "prometheus": "prometheus",
    "shellcheck": "shellcheck",
}
NODE = (
    "containerd",
    "runc",
    "containernetworking-plugins",
    "iptables",
    "iproute2",
    "conntrack",
    "socat",
    "busybox-static",
    "openssl",
    "mount",
)
BUILD = ("docker.io", "debootstrap")
POLICY = Path("/usr/sbin/policy-rc.d")
DISTRIBUTION_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def missing(packages: Iterable[str]) -> tuple[str, ...]:
    """Those packages that dpkg does not have installed."""
    wanted = tuple(packages)
    shown = attempt(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *wanted]).stdout
    there = {
        words[0] for line in shown.splitlines() if (words := line.split())[1:] == ["installed"]
    }
    return tuple(name for name in wanted if name not in there)


@contextmanager
def _no_service_started() -> Iterator[None]:
    """Installing docker.io or containerd must not start a second daemon on this machine."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()


def ensure(packages: Iterable[str]) -> None:
    """Install what is missing, one line of progress; nothing when all is there."""
    wanted = missing(packages)
    if not wanted:
        return
    if os.geteuid() != 0:
        raise RefusedError(
            f"missing Debian packages, and only root may install: {' '.join(wanted)}"
        )
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "--no-install-recommends", *wanted]
    with step(f"install Debian packages {' '.join(wanted)}"), _no_service_started():
        if attempt(install, env=env).returncode != 0:
            run(["apt-get", "update"], env=env)
            run(install, env=env)


def program(name: str) -> Path:
    """Path of a program of a Debian package; the distribution's, not one found first on PATH."""
    found = shutil.which(name, path=DISTRIBUTION_PATH)
    if found is None:
        ensure([PACKAGE_OF[name]])
        found = shutil.which(name, path=DISTRIBUTION_PATH)
    if found is None:
        raise RefusedError(f"package {PACKAGE_OF[name]} is installed but has no program {name}")
    return Path(found)
