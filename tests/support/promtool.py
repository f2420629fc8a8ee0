"""Prometheus' own reading of queries and alerts, over series that a test makes up."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from .helm import ROOT


@cache
def binary() -> str:
    """The path of promtool, installed when it is missing."""
    command = [sys.executable, "-m", "local", "tool", "promtool"]
    return subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def fault(
    made_up: Mapping[str, str],
    *,
    groups: Sequence[Mapping[str, Any]] = (),
    queries: Sequence[Mapping[str, Any]] = (),
) -> str:
    """What is not as expected, in promtool's words; empty when all is.

    Args:
        made_up: values by series, one each half minute, in promtool's notation.
        groups: rules.
        queries: what is answered when, as promtool's `promql_expr_test`.
    """
    listed = [{"series": name, "values": values} for name, values in made_up.items()]
    case = {"interval": "30s", "input_series": listed, "promql_expr_test": [*queries]}
    with tempfile.TemporaryDirectory() as folder:
        rules, tests = Path(folder, "rules.json"), Path(folder, "tests.json")
        rules.write_text(json.dumps({"groups": [*groups]}))
        tests.write_text(json.dumps({"rule_files": [str(rules)], "tests": [case]}))
        command = [binary(), "test", "rules", str(tests)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr if done.returncode else ""
