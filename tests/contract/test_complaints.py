"""Each complaint of other systems' users is kept out by tests that exist and bear its number."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (TESTS / "complaints.md").read_text().splitlines()
    if line.startswith("|")
][2:]
NAMED = [(name, row[1]) for row in ROWS for name in re.findall(r"`(\S+?\.py::\S+?)`", row[2])]


@pytest.mark.parametrize(("name", "told_in"), NAMED, ids=[name for name, _ in NAMED])
def test_a_test_that_keeps_a_complaint_out_exists_and_bears_its_number(
    name: str, told_in: str
) -> None:
    file, function = name.split("::")
    text = (TESTS / file).read_text()
    assert re.search(rf"^(?:async )?def {function}\(", text, re.MULTILINE)
    numbers = re.findall(r"#(\d+)", told_in)
    assert any(function.endswith(f"_{number}") for number in numbers)


def test_every_complaint_says_where_it_was_told_and_what_keeps_it_out() -> None:
    assert len(ROWS) == 25
    for what, told_in, kept_out in ROWS:
        assert what
        assert "#" in told_in
        assert "::" in kept_out
