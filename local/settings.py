"""Reads flags and environment once; nothing else of the tool looks at the environment."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
# What a container runtime or a package installer needs to reach the outside, where that is needed.
PASSED_ON = ("http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Settings:
    """Where things lie on this machine, and which cluster is meant."""

    cache: Path
    repository: Path = REPOSITORY
    existing_kubeconfig: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        """Everything of the cluster that ``down`` removes."""
        return self.cache / "cluster"

    @property
    def run(self) -> Path:
        """One record a started process."""
        return self.state / "run"

    @property
    def pki(self) -> Path:
        """Keys and certificates, readable by the owner only."""
        return self.state / "pki"

    @property
    def config(self) -> Path:
        """Rendered configuration of the parts, kubeconfigs included."""
        return self.state / "config"

    @property
    def logs(self) -> Path:
        """One log a part; removed by ``down`` as well."""
        return self.state / "log"

    @property
    def containerd_socket(self) -> Path:
        """Where our own containerd listens."""
        return self.state / "containerd" / "containerd.sock"

    @property
    def admin_kubeconfig(self) -> Path:
        """The kubeconfig of the cluster made here."""
        return self.config / "admin.kubeconfig"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the cluster in use, made here or not."""
        return self.existing_kubeconfig or self.admin_kubeconfig

    @property
    def found(self) -> Path:
        """What the machine was like before the first ``up``; ``down`` goes back to it."""
        return self.state / "found.json"

    @property
    def cgroup(self) -> str:
        """Name of the control group under which all pods of this cluster run."""
        return f"hypic-{hashlib.sha256(str(self.state).encode()).hexdigest()[:8]}"


def _existing(flag: str | None, environ: Mapping[str, str], own: Path) -> Path | None:
    named = flag or environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    if not named:
        return None
    path = Path(named).expanduser().absolute()
    return None if path == own else path


def load(*, kubeconfig: str | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Settings of this run; ``--kubeconfig`` or KUBECONFIG names a cluster that exists already."""
    environ = os.environ if environ is None else environ
    home = environ.get("HYPIC_CACHE") or "~/.cache/hypic"
    cache = Path(home).expanduser().absolute()
    wanted = {name for low in PASSED_ON for name in (low, low.upper())}
    own = Settings(cache=cache).admin_kubeconfig
    return Settings(
        cache=cache,
        existing_kubeconfig=_existing(kubeconfig, environ, own),
        environment={
            "PATH": environ.get("PATH", SYSTEM_PATH) + ":" + SYSTEM_PATH,
            "HOME": environ.get("HOME", "/root"),
            **{name: environ[name] for name in sorted(wanted) if name in environ},
        },
    )
