"""What the README says that files alone can answer; `tests/integration/engine` runs its curls."""

import re
from pathlib import Path

import pytest
import yaml

from hypic_operator.core import api

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md")]
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_leads_somewhere(document):
    missing = [
        link
        for link in LINK.findall(document.read_text())
        if not (document.parent / link).resolve().exists()
    ]
    assert not missing


def test_every_make_target_that_is_named_exists():
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set()
    for document in DOCUMENTS:
        named |= set(re.findall(r"`make ([a-z0-9-]+)", document.read_text()))
    assert named - targets == set()


def test_the_way_of_a_request_leads_through_modules_that_exist():
    package = ROOT / "engine" / "hypic_engine"
    text = (ROOT / "engine" / "README.md").read_text()
    way = text.partition("## One request, through the code")[2].partition("\n## ")[0]
    named = re.findall(r"`((?:plugin|core|ops|contract)/[\w/.]+)`", way)
    assert len(named) > 20
    assert [path for path in named if not (package / path).exists()] == []


def test_the_cluster_in_the_readme_is_one():
    source = re.search(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert source is not None
    resource = yaml.safe_load(source[1])
    assert resource["apiVersion"] == "serving.hypic.dev/v1alpha1"
    resource["metadata"] |= {"namespace": "default", "uid": "u", "generation": 1}
    assert api.HypicCluster.model_validate(resource).spec.prefill.replicas == 2


def test_the_readmes_table_is_one_that_adds_up():
    text = (ROOT / "README.md").read_text()
    rows = re.findall(r"^  [A-D ]+?  +(\d+) of (\d+) \(\d+%\)", text, re.MULTILINE)[1:]
    last = re.search(r"demo: ok, cached (\d+) of (\d+) document tokens", text)
    assert last is not None
    assert sum(int(cached) for cached, _ in rows) == int(last[1])
    assert sum(int(tokens) for _, tokens in rows) == int(last[2])
