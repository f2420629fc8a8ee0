"""What docs/router.md says of flags, limits, metrics and errors is what the router has."""

import re
from pathlib import Path

from hypic_router import errors, flags
from hypic_router.guard import refusals
from hypic_router.metrics import Metrics

PAGE = (Path(__file__).parents[2] / "docs" / "router.md").read_text()
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")


def options():
    return {
        action.option_strings[-1]: action
        for action in flags.command_line()._actions
        if action.dest != "help"
    }


def leaves(kind):
    below = [leaf for one in kind.__subclasses__() for leaf in leaves(one)]
    return below or [kind]


def test_every_flag_is_explained_and_there_are_no_others():
    assert set(FLAG.findall(PAGE)) == set(options())


def test_every_flag_says_in_help_what_it_does():
    assert [name for name, action in options().items() if not action.help] == []


def test_the_defaults_of_the_limits_are_those_of_the_command():
    rows = re.findall(r"^\| (`--.*?) \| (.*?) \|", PAGE.split("## Limits")[1], re.MULTILINE)
    said = {}
    for names, values in rows:
        said |= dict(zip(FLAG.findall(names), values.split(", "), strict=True))
    assert {name: float(value) for name, value in said.items()} == {
        name: action.default
        for name, action in options().items()
        if isinstance(action.default, int | float) and "port" not in name
    }


def test_every_metric_of_the_scrape_is_named():
    section = PAGE.split("## Metrics")[1]
    short = set(re.findall(r"`(?:hypic_router)?_([a-z_]+)", section))
    families = Metrics().registry.collect()
    scraped = {
        family.name.removeprefix("hypic_router_") + ("_total" if family.type == "counter" else "")
        for family in families
    }
    assert short == scraped


def test_every_error_is_in_the_table_with_its_status():
    table = PAGE.split("| status | `code` | when |")[1].split("\n\n")[0]
    said = set()
    for statuses, codes in re.findall(r"^\| ([\d, ]+) \| (.*?) \|", table, re.MULTILINE):
        said |= {
            (int(n), code) for n in statuses.split(", ") for code in re.findall(r"`(.*?)`", codes)
        }
    kinds = {errors.RouterError, refusals.NoKeyError, *leaves(errors.RouterError)}
    kinds -= {errors.StaleError}  # is always asked again, on a new connection
    own = {(kind.status, kind.code) for kind in kinds}
    assert own <= said, own - said
    assert {code for _, code in said} == {code for _, code in own}
