"""Makes the base of the images where no registry can be reached: a small Debian 12 with Python.

For one machine only. In production the bases are the build arguments of the Dockerfiles.
"""

import hashlib
import os
import re
import shutil
import tempfile
from pathlib import Path

from .. import packages, preflight
from ..progress import step
from ..settings import Settings
from ..shell import run

SUITE = "bookworm"
# Libraries that SGLang and Mooncake are linked against and the wheels do not bring.
LIBRARIES = ("libcurl4", "libibverbs1", "libnuma1")
PACKAGES = ("ca-certificates", *LIBRARIES, "python3", "python3-venv")
DEFAULT_MIRROR = "http://deb.debian.org/debian"
SOURCES = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))
NOT_NEEDED = (
    "usr/share/doc",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/man",
    "var/cache/apt",
    "var/lib/apt/lists",
    "var/log",
)
EMPTY_AGAIN = ("var/cache/apt/archives/partial", "var/lib/apt/lists/partial", "var/log")


def mirror(sources: str) -> str | None:
    """The Debian mirror that apt uses on this machine, from the text of its sources."""
    for pattern in (r"^URIs:\s*(\S+/debian/?)\s*$", r"^deb\s+(?:\[[^]]*\]\s+)?(\S+/debian/?)\s"):
        found = re.search(pattern, sources, re.MULTILINE)
        if found:
            return found.group(1)
    return None


def key() -> str:
    """Names the recipe: another list of packages is another base."""
    recipe = "\0".join((SUITE, *PACKAGES, *NOT_NEEDED))
    return hashlib.sha256(recipe.encode()).hexdigest()[:12]


def _path(settings: Settings) -> Path:
    return settings.cache / "images" / f"base-{key()}.tar"


def is_made(settings: Settings) -> bool:
    """Whether the base of today's recipe is there."""
    return _path(settings).exists()


def archive(settings: Settings) -> Path:
    """Path of the base as a tar of a root file system, made when missing."""
    path = _path(settings)
    if not path.exists():
        preflight.require_root()
        packages.ensure(packages.BUILD)
        path.parent.mkdir(parents=True, exist_ok=True)
        with step(f"make a base image, Debian {SUITE}", takes="about 90 seconds"):
            _make(path)
    return path


def _make(path: Path) -> None:
    texts = (source.read_text() for source in SOURCES if source.exists())
    source = next((found for text in texts if (found := mirror(text))), DEFAULT_MIRROR)
    debootstrap = packages.program("debootstrap")
    partial = path.with_suffix(f".partial-{os.getpid()}")
    with tempfile.TemporaryDirectory(dir=path.parent) as root:
        options = ["--variant=minbase", f"--include={','.join(PACKAGES)}"]
        run([debootstrap, *options, SUITE, root, source])
        for name in NOT_NEEDED:
            shutil.rmtree(Path(root, name), ignore_errors=True)
        for name in EMPTY_AGAIN:
            Path(root, name).mkdir(parents=True, exist_ok=True)
        Path(root).chmod(0o755)
        run(["tar", "--create", "--numeric-owner", "--file", partial, "--directory", root, "."])
    partial.replace(path)
