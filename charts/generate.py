"""Make each chart's schema, README and copies of the CRDs from their sources.

Sources are `charts/*/values.yaml` (with `# --` comments), `charts/*/Chart.yaml` and `crds/*.yaml`.
Does not render templates. `--check` writes nothing and fails when a file differs.
"""

import argparse
import difflib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
CRDS_CHART = "hypic-operator"
DESCRIPTION = "# -- "
SCHEMA = "# @schema "
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}


class SourceError(Exception):
    """A values file breaks a rule of its comments; the message names file and key."""


@dataclass(frozen=True, slots=True)
class Value:
    """One documented leaf of a values file.

    Attributes:
        path: keys from the top.
        default: what the file gives.
        description: the text after `# --`.
        schema: what `# @schema` adds to the schema derived from the default.
    """

    path: tuple[str, ...]
    default: Any
    description: str
    schema: dict[str, Any]


def introduction(text: str) -> str:
    """The comment at the top of a values file, up to the first line that is none."""
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line[2:])
    return "\n".join(lines)


def comment_above(lines: list[str], at: int) -> tuple[str, dict[str, Any]]:
    """Description and schema in the comment that ends just above line ``at`` (0 is the first)."""
    first = at
    while first > 0 and lines[first - 1].strip().startswith("#"):
        first -= 1
    description: list[str] = []
    schema: dict[str, Any] = {}
    for line in (raw.strip() for raw in lines[first:at]):
        if line.startswith(SCHEMA):
            schema = yaml.safe_load(line.removeprefix(SCHEMA))
        elif line.startswith(DESCRIPTION):
            description = [line.removeprefix(DESCRIPTION)]
        elif description:
            description.append(line.removeprefix("# "))
    return " ".join(description), schema


def values(text: str) -> list[Value]:
    """The leaves of a values file in its order: whatever has a `# --` comment, or no keys below.

    Raises:
        SourceError: a leaf has no description.
    """
    lines = text.splitlines()

    def walk(node: yaml.MappingNode, above: tuple[str, ...]) -> Iterator[Value]:
        for key, child in node.value:
            path = (*above, key.value)
            description, schema = comment_above(lines, key.start_mark.line)
            if isinstance(child, yaml.MappingNode) and child.value and not description:
                yield from walk(child, path)
                continue
            if not description:
                raise SourceError(f"{'.'.join(path)} has no '# --' description above it")
            default = yaml.safe_load(yaml.serialize(child))
            yield Value(path, default, description, schema)

    top = yaml.compose(text)
    assert isinstance(top, yaml.MappingNode)
    return list(walk(top, ()))


def leaf_schema(value: Value) -> dict[str, Any]:
    """One value's schema: type from its default unless given; null only where it is default."""
    derived: dict[str, Any] = {"description": value.description}
    if value.default is not None:
        derived["type"] = TYPES.get(type(value.default), "object")
    schema = derived | value.schema
    if value.default is not None:
        return schema | {"default": value.default}
    if "type" not in schema:
        raise SourceError(f"{'.'.join(value.path)} is null and needs a '# @schema' with its type")
    if "enum" in schema:
        schema["enum"] = [*schema["enum"], None]
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return schema | {"type": [*kinds, "null"], "default": None}


def schema(title: str, leaves: list[Value]) -> dict[str, Any]:
    """A JSON schema that refuses every key that the values file does not have."""
    top: dict[str, Any] = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": title,
        "type": "object",
        "additionalProperties": False,
        "properties": {"global": {"description": "Set by a parent chart", "type": "object"}},
    }
    for value in leaves:
        at = top
        for key in value.path[:-1]:
            closed = {"type": "object", "additionalProperties": False, "properties": {}}
            at = at["properties"].setdefault(key, closed)
        at["properties"][value.path[-1]] = leaf_schema(value)
    return top


def readme(chart: dict[str, Any], intro: str, leaves: list[Value]) -> str:
    """The chart's README: what it is, how to install it, and a table of all values."""
    rows = [
        f"| `{'.'.join(value.path)}` | {value.description} | `{json.dumps(value.default)}` |"
        for value in leaves
    ]
    return "\n".join(
        [
            "<!-- Generated from values.yaml by charts/generate.py; edit that file. -->",
            f"# {chart['name']}",
            "",
            chart["description"],
            "",
            intro,
            "",
            f"Chart {chart['version']}, Kubernetes {chart['kubeVersion'].removesuffix('-0')}.",
            "",
            "## Values",
            "",
            "| value | meaning | default |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def outputs(root: Path) -> dict[Path, str]:
    """Every generated file below ``root`` with the content it must have."""
    made: dict[Path, str] = {}
    for chart_yaml in sorted(root.glob("charts/*/Chart.yaml")):
        folder = chart_yaml.parent
        chart = yaml.safe_load(chart_yaml.read_text())
        text = (folder / "values.yaml").read_text()
        leaves = values(text)
        as_json = json.dumps(schema(f"Values of {chart['name']}", leaves), indent=2)
        made[folder / "values.schema.json"] = as_json + "\n"
        made[folder / "README.md"] = readme(chart, introduction(text), leaves)
    for crd in sorted(root.glob("crds/*.yaml")):
        made[root / "charts" / CRDS_CHART / "files" / "crds" / crd.name] = crd.read_text()
    return made


def stale(root: Path, made: dict[Path, str]) -> list[Path]:
    """Copies of CRDs whose source is gone."""
    copies = (root / "charts" / CRDS_CHART / "files" / "crds").glob("*.yaml")
    return sorted(path for path in copies if path not in made)


def differences(made: dict[Path, str], root: Path) -> list[str]:
    """A unified diff for each file that is not as generated."""
    found: list[str] = []
    for path, content in made.items():
        before = path.read_text() if path.exists() else ""
        name = str(path.relative_to(root))
        diff = difflib.unified_diff(before.splitlines(), content.splitlines(), name, name, n=1)
        if before != content:
            found.append("\n".join(line.rstrip("\n") for line in diff))
    return found


def main(argv: list[str], root: Path = ROOT) -> int:
    """Write the generated files, or with `--check` show how they differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    check = parser.parse_args(argv).check
    made = outputs(root)
    gone = stale(root, made)
    found = differences(made, root) + [f"{path.relative_to(root)}: no such CRD" for path in gone]
    if check and found:
        sys.stderr.write("\n".join([*found, "Run `make generate`.", ""]))
        return 1
    if not check:
        for path, content in made.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        for path in gone:
            path.unlink()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
