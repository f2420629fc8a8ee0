"""Builds the three images with BuildKit and brings them into the node, when they are not there."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .. import lock, preflight
from ..errors import FailedError, RefusedError
from ..progress import say, step
from ..settings import Settings
from ..shell import attempt
from . import base, load, tag
from .dockerd import Docker, running

AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
ARCHIVES_KEPT = 4
PIP_SETTINGS = ("index-url", "extra-index-url")


def images(settings: Settings) -> tuple[str, ...]:
    """Names of the three images, present in the node of this machine."""
    names = tag.names(settings.repository)
    if settings.existing_kubeconfig is not None:
        raise RefusedError(load.how_to_load_elsewhere(str(archive(settings, names))))
    if not settings.containerd_socket.exists():
        archive(settings, names)
        say("no node here to load them into: run `python3 -m local up`, then `images` again")
        return names
    if not all(load.is_loaded(settings, name) for name in names):
        path = archive(settings, names)
        with step("load the three images into the node"):
            load.load_archive(settings, path)
    return names


def archive(settings: Settings, names: tuple[str, ...]) -> Path:
    """One docker archive with the three images, built when missing; the oldest are removed."""
    suffix = names[0].rpartition(":")[2]
    path = settings.cache / "images" / f"hypic-{suffix}.tar"
    if not path.exists():
        preflight.require_root()
        preflight.require_disk(settings.cache, [] if base.is_made(settings) else ["images"])
        root = base.archive(settings)
        with lock.exclusive(settings, "images"), running(settings) as docker:
            _build(settings, docker, root, suffix)
            with step("save the images"):
                partial = path.with_suffix(f".partial-{os.getpid()}")
                docker("save", "--output", partial, *names)
        if tag.names(settings.repository) != names:
            partial.unlink()
            raise FailedError("sources changed while the images were built: run it again")
        partial.replace(path)
        for old in _but_newest(path.parent.glob("hypic-*.tar")):
            old.unlink()
    return path


def _but_newest(archives: Iterable[Path]) -> list[Path]:
    """What may go: several checkouts may share a cache, so a few archives stay."""
    return sorted(archives, key=lambda path: path.stat().st_mtime)[:-ARCHIVES_KEPT]


def _build(settings: Settings, docker: Docker, root: Path, suffix: str) -> None:
    base_name = f"{tag.REGISTRY}/base:{base.key()}"
    if not docker.has_image(base_name):
        with step("import the base image"):
            docker("import", root, base_name)
    with _secrets() as secrets:
        for kind in tag.KINDS:
            words = [
                *("build", "--network", "host", "--quiet", *secrets),
                *("--build-arg", f"PYTHON_BASE={base_name}"),
                *("--build-arg", f"ENGINE_BASE={base_name}"),
                *("--build-arg", f"VERSION={suffix}"),
                *("--file", str(settings.repository / "images" / kind / "Dockerfile")),
                *("--tag", f"{tag.REGISTRY}/{kind}:{suffix}", str(settings.repository)),
            ]
            with step(f"build the {kind} image"):
                docker(*words, env={**os.environ, "DOCKER_BUILDKIT": "1"})


@contextmanager
def _secrets() -> Iterator[list[str]]:
    """How pip reaches its index on this machine, given to the build without entering a layer."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "pip.conf")
        config.write_text("\n".join(["[global]", *_pip_lines()]) + "\n")
        words = ["--secret", f"id=pip.conf,src={config}"]
        if AUTHORITIES.exists():
            words += ["--secret", f"id=ca.crt,src={AUTHORITIES}"]
        yield words


def _pip_lines() -> Iterator[str]:
    if AUTHORITIES.exists():
        yield "cert = /run/secrets/ca.crt"
    for name in PIP_SETTINGS:
        shown = attempt(["python3", "-m", "pip", "config", "get", f"global.{name}"])
        if shown.returncode == 0:
            yield f"{name} = {shown.stdout.strip()}"
