"""Each complaint of other systems' users is kept out by tests that exist and bear its number."""

import re

import pytest

from ..support import tables

ROWS = tables.rows("complaints.md")
NAMED = [(name, row[1]) for row in ROWS for name in tables.named(row[2])]


@pytest.mark.parametrize(("name", "told_in"), NAMED, ids=[name for name, _ in NAMED])
def test_a_test_that_keeps_a_complaint_out_exists_and_bears_its_number(
    name: str, told_in: str
) -> None:
    file, function = name.split("::")
    assert function in tables.functions(file)
    numbers = re.findall(r"#(\d+)", told_in)
    assert any(function.endswith(f"_{number}") for number in numbers)


def test_every_complaint_says_where_it_was_told_and_what_keeps_it_out() -> None:
    assert len(ROWS) == 25
    for what, told_in, kept_out in ROWS:
        assert what
        assert "#" in told_in
        assert "::" in kept_out
