"""Brings images into the node's containerd and lists what is there."""

import json
import shutil
import subprocess
import tarfile
from pathlib import Path

from .. import packages, preflight
from ..errors import FailedError, RefusedError
from ..progress import step
from ..settings import Settings
from ..shell import attempt, run

NAMESPACE = "k8s.io"


def ctr(settings: Settings) -> list[str]:
    """The start of a command to the node's containerd."""
    program = packages.program("ctr")
    return [str(program), "--address", str(settings.containerd_socket), "--namespace", NAMESPACE]


def loaded(settings: Settings) -> tuple[str, ...]:
    """Names of the images in the node, without those that are only digests."""
    names = run([*ctr(settings), "images", "ls", "--quiet"]).split()
    return tuple(name for name in names if not name.startswith("sha256:") and "@" not in name)


def is_loaded(settings: Settings, name: str) -> bool:
    """Whether the node has an image of exactly this name and tag."""
    listed = attempt([*ctr(settings), "images", "ls", "--quiet", f"name=={name}"])
    return listed.returncode == 0 and name in listed.stdout.split()


def load_archive(settings: Settings, path: Path) -> None:
    """Import a docker or OCI archive."""
    run([*ctr(settings), "images", "import", "--no-unpack=false", path])


def names_in(path: Path) -> tuple[str, ...]:
    """The image names that a docker archive carries."""
    try:
        with tarfile.open(path) as tar:
            member = tar.extractfile("manifest.json")
            listed = json.load(member) if member is not None else []
    except (tarfile.TarError, KeyError, ValueError) as error:
        raise RefusedError(
            f"{path} is no image archive as `docker save` writes it: {error}"
        ) from None
    return tuple(name for image in listed for name in image.get("RepoTags") or ())


def require_node(settings: Settings) -> None:
    """Refuse when there is no node here to load into."""
    preflight.require_root()
    if not settings.containerd_socket.exists():
        raise RefusedError("no node on this machine yet: run `python3 -m local up` first")


def load(settings: Settings, image: str) -> tuple[str, ...]:
    """Bring an archive, or an image of this machine's Docker, into the node; names it has there."""
    if settings.existing_kubeconfig is not None:
        raise RefusedError(how_to_load_elsewhere(image))
    require_node(settings)
    path = Path(image)
    if path.is_file():
        names = names_in(path)
        with step(f"load {', '.join(names) or path} into the node"):
            load_archive(settings, path)
        return names
    with step(f"load {image} from this machine's Docker into the node"):
        _pipe_from_docker(settings, image)
    return (image,)


def _pipe_from_docker(settings: Settings, image: str) -> None:
    docker = shutil.which("docker")
    if docker is None:
        raise RefusedError(f"{image} is neither a file nor, without `docker` on PATH, an image")
    if attempt([docker, "image", "inspect", image]).returncode != 0:
        raise RefusedError(
            f"{image} is neither a file nor an image that `docker image ls` shows; for the three "
            "images of this repository: python3 -m local images"
        )
    with subprocess.Popen([docker, "save", image], stdout=subprocess.PIPE) as saved:
        importer = [*ctr(settings), "images", "import", "-"]
        done = subprocess.run(importer, stdin=saved.stdout, capture_output=True, check=False)
    if saved.returncode != 0 or done.returncode != 0:
        raise FailedError(f"cannot load {image}: {done.stderr.decode(errors='replace').strip()}")


def how_to_load_elsewhere(image: str) -> str:
    """What to do for a cluster that was not made here; commands for the tools on PATH."""
    kind = f"kind load docker-image {image}   (an archive: kind load image-archive {image})"
    k3d = f"k3d image import {image}"
    ways = [way for tool, way in (("kind", kind), ("k3d", k3d)) if shutil.which(tool)]
    if not ways:
        ways = [f"push {image} to a registry that its nodes can pull from"]
    listed = "\n  ".join(ways)
    return f"the cluster in use was not made here, so images reach it another way:\n  {listed}"
