"""Computes the tag of the images from everything that goes into them; builds nothing."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

KINDS = ("operator", "router", "engine")
REGISTRY = "localhost/hypic"
# What the Dockerfiles copy, and what decides how and on which base they are built.
INPUTS = (
    *KINDS,
    *(f"images/{kind}" for kind in KINDS),
    "images/build.txt",
    "locks/operator.txt",
    "locks/router.txt",
    "local/images/base.py",
)
# As in the .dockerignore files: made by running or installing, not by people.
LEFT_OUT = re.compile(r"(^|/)(__pycache__|[^/]*\.egg-info)(/|$)|\.pyc$")


def files(repository: Path) -> Iterator[tuple[str, bytes]]:
    """Every file that goes into an image: path in the repository, content."""
    for name in INPUTS:
        root = repository / name
        for path in [root] if root.is_file() else sorted(root.rglob("*")):
            relative = path.relative_to(repository).as_posix()
            if path.is_file() and not LEFT_OUT.search(relative):
                yield relative, path.read_bytes()


def digest(contents: Iterable[tuple[str, bytes]]) -> str:
    """Twelve hex digits over paths and contents, in whatever order they come."""
    sha = hashlib.sha256()
    for path, content in sorted(contents):
        for part in (path.encode(), content):
            sha.update(len(part).to_bytes(8, "little"))
            sha.update(part)
    return sha.hexdigest()[:12]


def tag(repository: Path) -> str:
    """The one tag of all three images, such as 0.1.0-0123456789ab."""
    text = (repository / "pyproject.toml").read_text()
    found = re.search(r'^version = "([^"]+)"', text, re.MULTILINE)
    version = found.group(1) if found else "0"
    return f"{version}-{digest(files(repository))}"


def names(repository: Path) -> tuple[str, ...]:
    """The full names of the three images."""
    suffix = tag(repository)
    return tuple(f"{REGISTRY}/{kind}:{suffix}" for kind in KINDS)
