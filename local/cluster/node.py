"""Writes what the parts read and says how they are; starts and ends nothing."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .. import toolchain
from ..machine import host, process
from ..settings import Settings
from . import health, pki
from .core import config, plan
from .core.parts import Layout, Part, all_parts

FOLDERS = ("run", "log", "config", "cni", "containerd", "kubelet", "etcd")


@dataclass(frozen=True, slots=True)
class Found:
    """One part, its record and what was observed of it."""

    part: Part
    record: process.Record | None
    observed: plan.Observed


def layout(settings: Settings, programs: Mapping[str, Path]) -> Layout:
    """The folders and programs of this cluster."""
    return Layout(
        state=settings.state,
        pki=settings.pki,
        config=settings.config,
        containerd_socket=settings.containerd_socket,
        programs=dict(programs),
    )


def known_parts(settings: Settings) -> tuple[Part, ...]:
    """All parts without building anything: names, health and ports are right, programs may lack."""
    nowhere = dict.fromkeys(toolchain.CLUSTER_PROGRAMS, Path("/nonexistent"))
    return all_parts(layout(settings, nowhere))


def write_configuration(settings: Settings) -> None:
    """Render every file anew; a file whose text is the same stays as it is."""
    settings.state.mkdir(parents=True, exist_ok=True, mode=0o711)
    for folder in FOLDERS:
        (settings.state / folder).mkdir(exist_ok=True, mode=0o700)
    pki.make(settings.pki)
    for path, text in _files(settings, host.facts()).items():
        if not path.exists() or path.read_text() != text:
            path.touch(mode=0o600)
            path.write_text(text)


def _files(settings: Settings, facts: config.Facts) -> dict[Path, str]:
    state, folder, keys = settings.state, settings.config, settings.pki
    socket = settings.containerd_socket
    cni = state / "cni" / "10-hypic.conflist"
    files = {
        folder / f"{user}.kubeconfig": config.kubeconfig(
            user=user,
            ca=(keys / "ca.crt").read_bytes(),
            certificate=(keys / f"{user}.crt").read_bytes(),
            key=(keys / f"{user}.key").read_bytes(),
        )
        for user in pki.KUBECONFIGS
    }
    files[folder / "containerd.toml"] = config.containerd(
        home=state / "containerd", socket=socket, cni=cni.parent, facts=facts
    )
    files[cni] = config.cni(leases=state / "leases")
    files[folder / "kubelet.json"] = config.kubelet(
        pki=keys, socket=socket, home=state, cgroup=settings.cgroup
    )
    files[folder / "proxy.json"] = config.proxy(
        kubeconfig_file=folder / "proxy.kubeconfig", facts=facts
    )
    files[folder / "Corefile"] = config.corefile(
        kubeconfig_file=folder / "dns.kubeconfig", facts=facts
    )
    return files


def inputs(part: Part) -> str:
    """Digest over the command of a part and the files it reads."""
    sha = hashlib.sha256("\0".join(part.argv).encode())
    for path in part.files:
        sha.update(path.read_bytes() if path.exists() else b"absent")
    return sha.hexdigest()[:16]


def observe(settings: Settings, part: Part) -> Found:
    """Look at one part: its record, its process, its answer."""
    record = process.read(settings.run, part.name)
    alive = record is not None and process.is_alive(record)
    observed = plan.Observed(
        recorded=record is not None,
        alive=alive,
        current=record is not None and record.inputs == inputs(part),
        healthy=alive and health.answers(part.health, pki=settings.pki),
    )
    return Found(part, record, observed)


def shims(settings: Settings) -> set[int]:
    """Processes that hold the pods of our containerd, known by its socket in their command."""
    wanted = str(settings.containerd_socket).encode()
    found = set()
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = command.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"containerd-shim" in words[0] and wanted in words:
            found.add(int(command.parts[2]))
    return found
