"""Write docs/api.md from the CustomResourceDefinitions: every field, its type, limits and meaning.

Does not validate them. `--check` writes nothing and fails when the page is not as generated.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("docs") / "api.md"
Schema = Mapping[str, Any]

HEAD = """\
<!-- Generated from crds/*.yaml by crds/reference.py; edit those files. -->
# The resources

Every field, as `kubectl explain` tells it too. A name ends in `[]` where a list holds such
objects; "as in Kubernetes" is what Kubernetes itself has there, with all of its fields.
"""


def kind_of(schema: Schema) -> str:
    """The type of a field in a word or two."""
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if schema["type"] == "array":
        return f"list of {kind_of(schema['items'])}"
    if "additionalProperties" in schema:
        return "map"
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return "object, as in Kubernetes"
    return str(schema["type"])


def limits_of(schema: Schema, *, required: bool) -> str:
    """What a value must keep to, beyond its type."""
    found = ["required"] if required else []
    if "default" in schema and schema["default"] != {}:
        found.append(f"default `{json.dumps(schema['default'])}`")
    if "enum" in schema:
        found.append("one of " + ", ".join(f"`{value}`" for value in schema["enum"]))
    if "minimum" in schema or "maximum" in schema:
        found.append(f"{schema.get('minimum', '')} to {schema.get('maximum', '')}".strip())
    if "maxLength" in schema:
        found.append(f"at most {schema['maxLength']} characters")
    if "maxItems" in schema:
        found.append(f"at most {schema['maxItems']}")
    found += [rule["message"] for rule in schema.get("x-kubernetes-validations", ())]
    return "; ".join(found)


def fields(schema: Schema, above: str = "") -> Iterator[tuple[str, Schema, bool]]:
    """Path, schema and whether it is required of every field below a schema."""
    for name, child in schema.get("properties", {}).items():
        path = f"{above}{name}"
        listed = child.get("type") == "array"
        yield f"{path}[]" if listed else path, child, name in schema.get("required", ())
        below = child["items"] if listed else child
        yield from fields(below, f"{path}[]." if listed else f"{path}.")


def table(schema: Schema) -> str:
    """One row a field."""
    rows = ["| field | type | meaning | limits |", "|---|---|---|---|"]
    for path, child, required in fields(schema):
        meaning = " ".join(child.get("description", "").split()).replace("<", "&lt;")
        cells = (f"`{path}`", kind_of(child), meaning, limits_of(child, required=required))
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)


def section(definition: Mapping[str, Any]) -> str:
    """One kind: what it is, its spec and its status."""
    names, (version,) = definition["spec"]["names"], definition["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    short = ", ".join(f"`{name}`" for name in names.get("shortNames", ()))
    known = f"`{names['plural']}`" + (f", short {short}" if short else "")
    parts = [
        f"## {names['kind']}",
        " ".join(schema["description"].split()).replace("<", "&lt;"),
        f"`{definition['spec']['group']}/{version['name']}`, {known}.",
    ]
    for part in ("spec", "status"):
        parts += [f"### {names['kind']} {part}", table(schema["properties"][part])]
    return "\n\n".join(parts)


def page(root: Path) -> str:
    """The whole page."""
    files = sorted((root / "crds").glob("*.yaml"))
    sections = (section(yaml.safe_load(file.read_text())) for file in files)
    return "\n".join([HEAD, "\n\n".join(sections), ""])


def main(argv: list[str], root: Path = ROOT) -> int:
    """Write the page, or with `--check` tell whether it is as generated."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    check = parser.parse_args(argv).check
    made, path = page(root), root / PAGE
    if not check:
        path.write_text(made)
    elif not path.exists() or path.read_text() != made:
        sys.stderr.write(f"{PAGE} is not as crds/*.yaml say. Run `make generate`.\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
