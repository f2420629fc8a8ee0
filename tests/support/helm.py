"""Runs helm as a user would: render a chart, or see how it refuses values."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]

# What has no default because it differs everywhere; files of values have it themselves.
NEEDED = {
    "hypic-operator": {"image.repository": "registry.example.test/hypic/operator"},
    "hypic-cluster": {"test.image.repository": "registry.example.test/hypic/router"},
}

Manifest = dict[str, Any]


@cache
def binary() -> str:
    """The path of helm: `HELM` where it is set, else the one that the local tool builds."""
    if given := os.environ.get("HELM"):
        return given
    command = [sys.executable, "-m", "local", "tool", "helm"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class Rendered:
    """What one `helm template` gave."""

    text: str
    objects: tuple[Manifest, ...]

    def of(self, kind: str) -> list[Manifest]:
        """The objects of a kind."""
        return [manifest for manifest in self.objects if manifest["kind"] == kind]

    def one(self, kind: str) -> Manifest:
        """The only object of a kind."""
        (found,) = self.of(kind)
        return found


def run(*args: str) -> subprocess.CompletedProcess[str]:
    """One helm command, finished, whatever its outcome."""
    return subprocess.run(
        [binary(), *args], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


# The same render answers many questions; helm is started once for all of them.
_run_once = cache(run)


def _template(
    chart: str,
    values: Mapping[str, Any],
    files: tuple[Path, ...],
    release: str,
    *,
    anew: bool = False,
    api_versions: tuple[str, ...] = (),
) -> Any:
    named = [word for path in files for word in ("-f", str(path))]
    values = dict(values) if files else NEEDED[chart] | dict(values)
    given = [word for key, value in values.items() for word in ("--set-json", _assign(key, value))]
    served = [word for version in api_versions for word in ("--api-versions", version)]
    where = ["--namespace", "team-a", *served]
    helm = run if anew else _run_once
    return helm("template", release, f"charts/{chart}", *where, *named, *given)


def _assign(key: str, value: object) -> str:
    return f"{key}={json.dumps(value)}"


def render(
    chart: str,
    *files: Path,
    release: str = "demo",
    anew: bool = False,
    api_versions: tuple[str, ...] = (),
    **values: Any,
) -> Rendered:
    """The objects of a chart, where the API server has more than Kubernetes' own.

    A value's name has `__` for each dot of its path.
    """
    dotted = {key.replace("__", "."): value for key, value in values.items()}
    done = _template(chart, dotted, files, release, anew=anew, api_versions=api_versions)
    assert done.returncode == 0, done.stderr
    loaded = yaml.load_all(done.stdout, Loader=yaml.CSafeLoader)
    objects = tuple(manifest for manifest in loaded if manifest)
    return Rendered(done.stdout, objects)


def refusal(chart: str, **values: Any) -> str:
    """What helm says when it refuses the values; fails when it takes them."""
    done = _template(chart, {key.replace("__", "."): v for key, v in values.items()}, (), "demo")
    assert done.returncode != 0, done.stdout
    return done.stderr
