"""Each known defect of the authors' prototype is kept out by tests that exist."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (TESTS / "defects.md").read_text().splitlines()
    if line.startswith("|")
][2:]
NAMED = sorted({name for row in ROWS for name in re.findall(r"`(\S+?\.py::\S+?)`", row[2])})


@pytest.mark.parametrize("name", NAMED)
def test_a_test_that_keeps_a_defect_out_exists(name):
    file, function = name.split("::")
    functions = re.findall(r"^(?:async )?def (test_\w+)", (TESTS / file).read_text(), re.MULTILINE)
    assert functions if function == "*" else function in functions


def test_every_defect_says_what_keeps_it_out():
    assert len(ROWS) > 30
    assert all(row[1] and row[2] for row in ROWS)
