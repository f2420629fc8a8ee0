import pytest

from hypic_engine.core.selection import Selection, selection
from hypic_engine.errors import RequestError

HELD = {"key": "k1", "digests": {"d1", "d2"}, "salt": "tenant"}


@pytest.mark.parametrize(
    "fields",
    [{"keys": ["k1"]}, {"digests": ["d2", "x"]}, {"salt": "tenant"}, {"all": True}],
)
def test_a_segment_is_meant_by_any_of_its_names(fields):
    assert selection(fields).takes(**HELD)


@pytest.mark.parametrize("fields", [{"keys": ["k2"]}, {"digests": ["k1"]}, {"salt": ""}])
def test_a_segment_is_not_meant_by_names_of_others(fields):
    assert not selection(fields).takes(**HELD)


def test_the_empty_salt_means_segments_without_one():
    assert selection({"salt": ""}).takes(key="k", digests=(), salt="")
    assert Selection().salt is None


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ([], "body"),
        ({}, "body"),
        ({"all": False}, "body"),
        ({"keys": []}, "body"),
        ({"key": ["k"]}, "key: is unknown"),
        ({"keys": "k"}, "keys"),
        ({"digests": [1]}, "digests"),
        ({"digests": ["d"] * 1001}, "1000"),
        ({"keys": ["k" * 65]}, "64"),
        ({"salt": 5}, "salt"),
        ({"salt": "s" * 4097}, "4096"),
        ({"all": 1}, "all"),
    ],
)
def test_what_selects_nothing_or_too_much_is_refused_with_its_name(fields, named):
    with pytest.raises(RequestError, match=named):
        selection(fields)
