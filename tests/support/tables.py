"""Tables in the folder of tests that say which tests keep a fault out."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]


def rows(name: str) -> list[list[str]]:
    """The cells of a Markdown table, without its head."""
    lines = (TESTS / name).read_text().splitlines()
    table = [line for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def named(cell: str) -> list[str]:
    """The tests that a cell names, as ``file::function``."""
    return re.findall(r"`(\S+?\.py::\S+?)`", cell)


def functions(file: str) -> list[str]:
    """The tests in a file."""
    return re.findall(r"^(?:async )?def (test_\w+)", (TESTS / file).read_text(), re.MULTILINE)
