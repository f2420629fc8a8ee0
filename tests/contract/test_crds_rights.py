"""The rights that the operator's README promises are those the tests run it with."""

from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
Rights = set[tuple[str, str, str]]


def _written() -> Rights:
    text = (ROOT / "operator" / "README.md").read_text().partition("## Rights")[2]
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    found = set()
    for group, resources, verbs in ([cell.strip() for cell in row] for row in rows[2:]):
        for resource in resources.split(","):
            for verb in verbs.split(","):
                found.add(("" if group == "core" else group, resource.strip(), verb.strip()))
    return found


def _granted() -> Rights:
    rules = yaml.safe_load((ROOT / "tests" / "data" / "operator" / "rights.yaml").read_text())
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_readme_lists_every_right_and_no_other() -> None:
    assert _written() == _granted()
