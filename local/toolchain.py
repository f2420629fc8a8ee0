"""Finds the programs the cluster needs, and builds or installs those that are missing.

Versions are pinned by the go.mod and go.sum files under ``tools/``; Debian's by the suite.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from . import lock, packages
from .errors import FailedError, RefusedError
from .progress import step
from .settings import Settings
from .shell import run

TOOLS = Path(__file__).parent / "tools"
OLDEST_GO = (1, 21)  # the first that fetches the version a go.mod asks for
USUAL_GO_PATH = "/usr/local/go/bin:/usr/lib/go/bin"
RECIPE = "1"  # raise when the build command below changes what comes out


@dataclass(frozen=True, slots=True)
class GoModule:
    """One folder under ``tools/``, and the programs built from it."""

    folder: str
    module: str
    programs: dict[str, str]  # program -> package
    build_takes: str
    tells_kubernetes: bool = False  # whether they carry the version of Kubernetes as well


MODULES = (
    GoModule(
        "kubernetes",
        "k8s.io/kubernetes",
        {
            name: f"k8s.io/kubernetes/cmd/{name}"
            for name in (
                "kube-apiserver",
                "kube-controller-manager",
                "kube-proxy",
                "kube-scheduler",
                "kubectl",
                "kubelet",
            )
        },
        "about 7 minutes",
    ),
    GoModule(
        "etcd", "go.etcd.io/etcd/server/v3", {"etcd": "go.etcd.io/etcd/server/v3"}, "about 1 minute"
    ),
    GoModule(
        "helm",
        "helm.sh/helm/v3",
        {"helm": "helm.sh/helm/v3/cmd/helm"},
        "about 2 minutes",
        tells_kubernetes=True,
    ),
    GoModule(
        "coredns",
        "github.com/coredns/coredns",
        {"coredns": "github.com/coredns/coredns"},
        "about 4 minutes",
    ),
    GoModule(
        "kubeconform",
        "github.com/yannh/kubeconform",
        {"kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform"},
        "a few seconds",
    ),
)
BUILT_BY = {program: module for module in MODULES for program in module.programs}
CLUSTER_PROGRAMS = (*MODULES[0].programs, "etcd", "coredns")


def version_of(go_mod: str, module: str) -> str:
    """The version of ``module`` that a go.mod file requires."""
    found = re.search(rf"^(?:require )?\s*{re.escape(module)} (v\S+)", go_mod, re.MULTILINE)
    if found is None:
        raise FailedError(f"go.mod does not require {module}")
    return found.group(1)


def link_flags(module: str, version: str, *, kubernetes: str) -> str:
    """Linker flags: no symbols, and the versions that the programs tell and go by.

    Args:
        module: path of a Go module.
        version: its version.
        kubernetes: the version of Kubernetes that runs here, such as v1.34.4.
    """
    flags = ["-s", "-w"]
    major, minor = kubernetes.removeprefix("v").split(".")[:2]
    if module == "k8s.io/kubernetes":
        values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
        values["gitTreeState"] = "clean"
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
            flags += [f"-X {package}.{name}={value}" for name, value in values.items()]
    if module == "helm.sh/helm/v3":
        flags.append(f"-X {module}/internal/version.version={version}")
        # What `helm template` and `helm lint` take a cluster to be when they ask none.
        for package in (f"{module}/pkg/chartutil", f"{module}/pkg/lint/rules"):
            flags += [f"-X {package}.k8sVersionMajor={major}"]
            flags += [f"-X {package}.k8sVersionMinor={minor}"]
    return " ".join(flags)


def _version(module: GoModule) -> str:
    return version_of((TOOLS / module.folder / "go.mod").read_text(), module.module)


def _link_flags(module: GoModule) -> str:
    return link_flags(module.module, _version(module), kubernetes=_version(MODULES[0]))


def folder(settings: Settings, module: GoModule) -> Path:
    """Where the programs of a module lie: another folder whenever they would be others."""
    sha = hashlib.sha256(RECIPE.encode())
    for name in ("go.mod", "go.sum"):
        sha.update((TOOLS / module.folder / name).read_bytes())
    if module.tells_kubernetes:
        sha.update(_link_flags(module).encode())
    return settings.cache / "tools" / f"{module.folder}-{sha.hexdigest()[:12]}"


def is_there(settings: Settings, program: str) -> bool:
    """Whether a Go program has been built already."""
    return (folder(settings, BUILT_BY[program]) / program).exists()


def go_version(go: Path) -> tuple[int, int]:
    """Major and minor version of a Go command itself, not of one that it would fetch."""
    said = run([go, "version"], env={**os.environ, "GOTOOLCHAIN": "local"})
    found = re.search(r"\bgo(\d+)\.(\d+)", said)
    if found is None:
        raise FailedError(f"`{go} version` says no version: {said.strip()}")
    return int(found.group(1)), int(found.group(2))


def find_go() -> Path:
    """A Go command that is new enough; a RefusedError says what to install."""
    paths = (shutil.which("go"), shutil.which("go", path=USUAL_GO_PATH))
    versions = {Path(path): go_version(Path(path)) for path in paths if path is not None}
    for go, version in versions.items():
        if version >= OLDEST_GO:
            return go
    found = " and ".join(f"{go} is Go {a}.{b}" for go, (a, b) in versions.items())
    raise RefusedError(
        f"{found or 'no `go` on PATH'}: install Go 1.21 or newer, for example an archive of "
        "https://go.dev/dl unpacked in /usr/local (Debian 12's golang package is too old). It "
        "fetches the version that local/tools/*/go.mod asks for by itself"
    )


def _build(settings: Settings, module: GoModule) -> None:
    source, target = TOOLS / module.folder, folder(settings, module)
    go = find_go()
    partial = target.with_name(f"{target.name}.partial-{os.getpid()}")
    partial.mkdir(parents=True)
    argv = ["build", "-mod=readonly", "-trimpath", "-ldflags", _link_flags(module)]
    try:
        with step(f"build {module.folder} {_version(module)}", takes=module.build_takes):
            # Debian's Go keeps to its own version unless it is told otherwise.
            env = {"GOTOOLCHAIN": "auto", **os.environ}
            run([go, *argv, "-o", f"{partial}/", *module.programs.values()], cwd=source, env=env)
        for program, package in module.programs.items():
            built = partial / _built_name(package)
            built.rename(partial / program)
        target.mkdir(exist_ok=True)
        for program in module.programs:
            (partial / program).replace(target / program)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _built_name(package: str) -> str:
    """Go names a program by its package, leaving out a major version at the end."""
    words = package.split("/")
    return words[-2] if re.fullmatch(r"v\d+", words[-1]) else words[-1]


def program(settings: Settings, name: str) -> Path:
    """Path of a program, built or installed when it was missing."""
    module = BUILT_BY.get(name)
    if module is not None:
        path = folder(settings, module) / name
        if not path.exists():
            with lock.exclusive(settings, "tools"):
                if not path.exists():  # another process may have built it meanwhile
                    _build(settings, module)
        return path
    if name not in packages.PACKAGE_OF:
        known = ", ".join(sorted({*BUILT_BY, *packages.PACKAGE_OF}))
        raise RefusedError(f"unknown tool {name!r}; known are {known}")
    return packages.program(name)


def programs(settings: Settings, names: Iterable[str]) -> dict[str, Path]:
    """Paths of several programs."""
    return {name: program(settings, name) for name in names}


def still_to_make(settings: Settings) -> tuple[str, ...]:
    """Which of the big things of a first run are not there yet, named as preflight counts them."""
    made = {
        "programs built with Go": all(is_there(settings, name) for name in CLUSTER_PROGRAMS),
        "images": any(settings.cache.glob("images/base-*.tar")),
        "the engine's environment": any(settings.cache.glob("engine-env-*/bin/python3")),
    }
    return tuple(name for name, there in made.items() if not there)
