"""A second cluster in a network namespace of its own, so that ending it disturbs nobody.

Shares nothing with the cluster of the machine but the tools that were built.
"""

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local import toolchain
from local.cluster import node
from local.machine import host, mounts, process
from local.settings import REPOSITORY, Settings, load

COMMAND_DEADLINE_S = 600


@dataclasses.dataclass(frozen=True)
class World:
    """One network namespace and one cache folder."""

    namespace: str
    cache: Path

    @property
    def settings(self) -> Settings:
        return dataclasses.replace(load(environ=os.environ), cache=self.cache)

    def run(self, *argv: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
        """A command inside the namespace."""
        without = {k: v for k, v in os.environ.items() if k != "KUBECONFIG"}
        return subprocess.run(
            ["nsenter", f"--net=/run/netns/{self.namespace}", *map(str, argv)],
            cwd=REPOSITORY,
            env={**without, "HYPIC_CACHE": str(self.cache), **environ},
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_DEADLINE_S,
        )

    def local(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """``python3 -m local`` inside the namespace."""
        return self.run(sys.executable, "-m", "local", *words, **environ)

    def kubectl(self, *words: str) -> str:
        """Standard output of kubectl; a failure fails the test with what it said."""
        kubectl = toolchain.program(self.settings, "kubectl")
        done = self.run(kubectl, "--kubeconfig", self.settings.admin_kubeconfig, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def records(self) -> dict[str, process.Record]:
        """Records of all parts that were started."""
        names = [part.name for part in node.known_parts(self.settings)]
        found = {name: process.read(self.settings.run, name) for name in names}
        return {name: record for name, record in found.items() if record is not None}

    def processes(self) -> dict[int, int | None]:
        """Every process of the cluster, pods and shims included, with its time of start."""
        pids = {record.pid for record in self.records().values()}
        pids |= set(node.shims(self.settings)) | host.cgroup_processes(self.settings.cgroup)
        return {pid: process.start_ticks(pid) for pid in pids}

    def traces(self) -> dict[str, list[str]]:
        """What a cluster leaves on a machine, as far as this one is concerned."""
        links = json.loads(self.run("ip", "-json", "link").stdout)
        saved = self.run("iptables-save").stdout + self.run("ip6tables-save").stdout
        kept = [line for line in saved.splitlines() if not line.startswith(("#", "*", "COMMIT"))]
        rules = [line for line in kept if " ACCEPT [" not in line]
        groups = [str(path) for path in host.CGROUPS.rglob(self.settings.cgroup)]
        return {
            "devices": sorted(link["ifname"] for link in links),
            "rules": rules,
            "mounts": mounts.below(self.cache),
            "control groups": groups,
        }


@contextmanager
def second_world(cache: Path) -> Iterator[World]:
    """A namespace with loopback, removed afterwards with whatever a failed test left in it."""
    tools = load().cache / "tools"
    toolchain.programs(load(), toolchain.CLUSTER_PROGRAMS)
    cache.mkdir()
    (cache / "tools").symlink_to(tools)
    # The room that images and environment would take is not needed here.
    (cache / "images").mkdir()
    (cache / "images" / "base-not-needed.tar").touch()
    interpreter = cache / "engine-env-not-needed" / "bin" / "python3"
    interpreter.parent.mkdir(parents=True)
    interpreter.touch()
    world = World(f"hypic-test-{os.getpid()}", cache)
    subprocess.run(["ip", "netns", "add", world.namespace], check=True)
    try:
        world.run("ip", "link", "set", "lo", "up")
        yield world
    finally:
        ended = world.local("down")
        subprocess.run(["ip", "netns", "delete", world.namespace], check=True)
    assert ended.returncode == 0, ended.stderr
