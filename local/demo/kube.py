"""Runs kubectl and helm for the demo; decides nothing."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import shell
from ..settings import REPOSITORY

TOOL_TIMEOUT = "5m"


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl for one namespace of one cluster."""

    path: Path
    kubeconfig: Path
    namespace: str

    def command(self, *argv: str) -> list[str]:
        """The whole command line."""
        where = ["--kubeconfig", str(self.kubeconfig), "--namespace", self.namespace]
        return [str(self.path), *where, *argv]

    def run(self, *argv: str, text_in: str | None = None) -> str:
        """Standard output of a command."""
        return shell.run(self.command(*argv), text_in=text_in)

    def get(self, *argv: str) -> dict[str, Any]:
        """An object, or a list of them, as the API server has it."""
        found: dict[str, Any] = json.loads(self.run("get", *argv, "-o", "json"))
        return found

    def apply(self, manifest: str) -> str:
        """Apply one or more manifests; answers with a line an object."""
        return self.run("apply", "-f", "-", text_in=manifest).strip()


@dataclass(frozen=True, slots=True)
class Helm:
    """helm for one namespace of one cluster."""

    path: Path
    kubeconfig: Path
    namespace: str

    def _run(self, *argv: str) -> str:
        where = ["--kubeconfig", str(self.kubeconfig), "--namespace", self.namespace]
        return shell.run([str(self.path), *where, *argv])

    def _status(self, release: str) -> str:
        releases = json.loads(self._run("list", "--all", "--filter", f"^{release}$", "-o", "json"))
        return str(releases[0]["status"]) if releases else "absent"

    def _unlock(self, release: str) -> None:
        # helm refuses to touch a release that an interrupted command left half done.
        match self._status(release):
            case "pending-upgrade" | "pending-rollback":
                self._run("rollback", release)
            case "pending-install" | "uninstalling":
                self._run("uninstall", release, "--wait", "--timeout", TOOL_TIMEOUT)
            case _:
                pass

    def install(self, release: str, chart: str, values: dict[str, Any]) -> None:
        """Install a chart or upgrade it, and wait until what it made is ready."""
        self._unlock(release)
        given = [
            word for key in values for word in ("--set-json", f"{key}={json.dumps(values[key])}")
        ]
        # CRDs outlive releases; whichever release left them, this one goes on with them.
        how = ["--take-ownership", "--wait", "--timeout", TOOL_TIMEOUT]
        self._run("upgrade", "--install", release, str(REPOSITORY / chart), *how, *given)
