"""The image that holds a pod's namespaces: one layer with a static busybox, packed by hand.

Also what tests run in pods when any small program will do.
"""

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

from .. import packages
from ..cluster.core.names import PAUSE_IMAGE
from ..settings import Settings
from ..shell import run

NAME = PAUSE_IMAGE
COMMAND = ["/bin/busybox", "sleep", "2147483647"]
SEARCH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def archive(settings: Settings) -> Path:
    """Path of the image as a docker archive, packed when missing."""
    path = settings.cache / "images" / "busybox-1.tar"
    if not path.exists():
        busybox = packages.program("busybox")
        applets = run([busybox, "--list"]).split()
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".partial-{os.getpid()}")
        partial.write_bytes(pack(busybox.read_bytes(), applets))
        partial.replace(path)
    return path


def pack(busybox: bytes, applets: list[str]) -> bytes:
    """A docker archive with busybox and a link an applet; the same bytes for the same input."""
    layer = _layer(busybox, applets)
    config = {
        "architecture": "amd64" if os.uname().machine == "x86_64" else "arm64",
        "os": "linux",
        "config": {"Cmd": COMMAND, "Env": [SEARCH], "User": "65532:65532"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_digest(layer)}"]},
        "history": [{"created_by": "python3 -m local"}],
    }
    encoded = json.dumps(config).encode()
    name = f"{_digest(encoded)}.json"
    manifest = [{"Config": name, "RepoTags": [NAME], "Layers": ["layer.tar"]}]
    files = {"layer.tar": layer, name: encoded, "manifest.json": json.dumps(manifest).encode()}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, content in files.items():
            _add(tar, path, content, mode=0o644)
    return out.getvalue()


def _layer(busybox: bytes, applets: list[str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for folder, mode in (("bin", 0o755), ("etc", 0o755), ("tmp", 0o1777)):
            _add(tar, folder, None, mode=mode)
        _add(tar, "bin/busybox", busybox, mode=0o755)
        _add(tar, "etc/passwd", b"root:x:0:0::/:/bin/sh\nuser:x:65532:65532::/tmp:/bin/sh\n")
        for applet in sorted(set(applets) - {"busybox"}):
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return out.getvalue()


def _add(tar: tarfile.TarFile, path: str, content: bytes | None, *, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(path)
    entry.mode = mode
    if content is None:
        entry.type = tarfile.DIRTYPE
        tar.addfile(entry)
        return
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
