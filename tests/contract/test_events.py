"""What engines tell routers about their cache: lines and pages, there and back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypic_engine.contract.events import (
    Alias,
    Alive,
    Cleared,
    Gap,
    Hello,
    Item,
    Page,
    Removed,
    Stored,
    decode,
    decode_page,
    encode,
    encode_page,
)
from hypic_engine.errors import ContractError

COUNT = st.integers(0, 2**53)
NAME = st.text(max_size=12)
ITEM = st.builds(
    Item,
    NAME,
    st.lists(NAME, max_size=3).map(tuple),
    COUNT,
    COUNT,
    st.sampled_from(["device", "host"]),
)
LINE = st.one_of(
    st.builds(Hello, NAME, COUNT),
    st.builds(Stored, COUNT, ITEM),
    st.builds(Alias, COUNT, ITEM),
    st.builds(Removed, COUNT, NAME),
    st.builds(Cleared, COUNT),
    st.builds(Alive, COUNT),
    st.just(Gap()),
)
PAGE = st.builds(Page, NAME, COUNT, st.lists(ITEM, max_size=3).map(tuple), st.none() | NAME)


@given(LINE)
def test_a_line_comes_back_as_it_was(line):
    raw = encode(line)
    assert raw.endswith(b"\n")
    assert raw.count(b"\n") == 1
    assert decode(raw) == line


@given(PAGE)
def test_a_page_comes_back_as_it_was(page):
    assert decode_page(encode_page(page)) == page


@pytest.mark.parametrize(
    ("line", "raw"),
    [
        (Hello("e", 7), {"epoch": "e", "seq": 7}),
        (
            Stored(8, Item("k", ("d",), 3, 9)),
            {
                "seq": 8,
                "kind": "stored",
                "key": "k",
                "digests": ["d"],
                "n_tokens": 3,
                "bytes": 9,
                "tier": "device",
            },
        ),
        (Removed(9, "k"), {"seq": 9, "kind": "removed", "key": "k"}),
        (Cleared(10), {"seq": 10, "kind": "cleared"}),
        (Alive(10), {"seq": 10, "kind": "alive"}),
        (Gap(), {"kind": "gap"}),
    ],
)
def test_lines_look_on_the_wire_as_the_contract_says(line, raw):
    assert json.loads(encode(line)) == raw


def test_fields_that_are_not_known_yet_are_ignored():
    assert decode('{"seq": 1, "kind": "alive", "load": 3}') == Alive(1)


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "what is this",
        "[]",
        '{"kind": "stored"}',
        '{"seq": "x", "kind": "alive"}',
        '{"seq": 1, "kind": "stored", "key": "k", "digests": 3, "n_tokens": 1, "bytes": 1}',
        '{"seq": 1, "kind": "unheard of"}',
        '{"seq": 1}',
    ],
)
def test_what_is_no_line_is_said_to_be_none(raw):
    with pytest.raises(ContractError):
        decode(raw)


@pytest.mark.parametrize(
    "raw", ["", "[]", "{}", '{"epoch": "e", "seq": 1, "items": [{}], "next": null}']
)
def test_what_is_no_page_is_said_to_be_none(raw):
    with pytest.raises(ContractError):
        decode_page(raw)
