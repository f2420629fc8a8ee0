"""Each known defect of the authors' prototype is kept out by tests that exist."""

import pytest

from ..support import tables

ROWS = tables.rows("defects.md")
NAMED = sorted({name for row in ROWS for name in tables.named(row[2])})


@pytest.mark.parametrize("name", NAMED)
def test_a_test_that_keeps_a_defect_out_exists(name: str) -> None:
    file, function = name.split("::")
    found = tables.functions(file)
    assert found if function == "*" else function in found


def test_every_defect_says_what_keeps_it_out() -> None:
    assert len(ROWS) > 30
    assert all(row[1] and row[2] for row in ROWS)
