"""The tokenizer cuts at separators or marks, and remembers segments without changing a token."""

import operator
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypic_engine.plugin.front import tokens
from hypic_engine.plugin.front.tokens import CuttingTokenizer, Marks, PieceIds, Remembered

SEP = "|"
BEGIN = 1


class Bytes:
    """One token a byte, and one at the beginning of a text that may have special tokens."""

    chat_template = "t"

    def __init__(self):
        self.encoded = []

    def encode(self, text, *, add_special_tokens=True):
        self.encoded.append(text)
        return [*([BEGIN] if add_special_tokens else []), *text.encode()]

    def __call__(self, text, **kwargs):
        return {"input_ids": [self.encode(one, **kwargs) for one in text]}


def cutting(host=None, remembered=None):
    return CuttingTokenizer(
        host or Bytes(), separator=SEP, marks=Marks(), remembered=remembered or Remembered()
    )


@pytest.fixture
def salted():
    before = tokens.partition.set("")
    yield tokens.partition.set
    tokens.partition.reset(before)


def test_separators_end_segments_and_never_become_tokens():
    ids = cutting().encode("head|one||two|Q|", add_special_tokens=False)
    assert bytes(ids) == b"headonetwoQ"
    assert (ids.texts, ids.ends) == (("head", "one", "two", "Q"), (4, 7, 10))
    assert ids.has_head
    assert not cutting().encode("|one|Q").has_head


def test_only_what_begins_a_prompt_gets_special_tokens():
    ids = cutting().encode("a|b|c")
    assert ids == [BEGIN, *b"abc"]
    assert ids.ends == (2, 3)
    assert cutting().encode("|") == []


def test_a_text_without_cuts_is_the_hosts_business():
    host = Bytes()
    assert cutting(host).encode("plain") == host.encode("plain")
    assert not isinstance(cutting(host).encode("plain"), PieceIds)
    assert cutting(host)(["a", "b"]) == host(["a", "b"])
    assert cutting(host)(["a|b", "c"])["input_ids"][1] == host.encode("c")


def test_where_parts_are_marked_separators_are_text():
    tokenizer = cutting()
    marked = tokenizer._marks.around("o|ne")
    ids = tokenizer.encode(
        f"head{marked} {tokenizer._marks.around('two')}Q|", add_special_tokens=False
    )
    assert ids.texts == ("head", "o|ne", " ", "two", "Q|")
    assert bytes(ids) == b"heado|ne twoQ|"


def test_marks_of_another_process_are_text():
    foreign = Marks().around("one")
    assert bytes(cutting().encode(foreign, add_special_tokens=False)) == foreign.encode()


def test_attributes_are_those_of_the_host():
    host = Bytes()
    tokenizer = cutting(host)
    tokenizer.chat_template = "other"
    assert (host.chat_template, tokenizer.chat_template) == ("other", "other")
    with pytest.raises(AttributeError):
        _ = tokenizer.missing


def test_a_prompt_that_goes_on_keeps_its_ends():
    ids = operator.add(cutting().encode("a|b|c", add_special_tokens=False), [7])
    assert (ids, ids.ends) == ([*b"abc", 7], (1, 2))


@given(st.lists(st.text("ab|", max_size=6), max_size=8), st.booleans())
def test_what_is_remembered_changes_no_token(texts, bare):
    before = tokens.partition.set("")
    try:
        kwargs = {"add_special_tokens": False} if bare else {}
        remembering, forgetful = cutting(), cutting(remembered=Remembered(0))
        for text in [*texts, *reversed(texts)]:
            kept, fresh = remembering.encode(text, **kwargs), forgetful.encode(text, **kwargs)
            assert kept == fresh
            assert getattr(kept, "ends", None) == getattr(fresh, "ends", None)
    finally:
        tokens.partition.reset(before)


@pytest.mark.usefixtures("salted")
def test_a_segment_is_tokenized_once_and_a_query_each_time():
    host = Bytes()
    tokenizer = cutting(host)
    for _ in range(3):
        tokenizer.encode("head|one|Q", add_special_tokens=False)
    assert host.encoded == ["head", "one", "Q", "Q", "Q"]


def test_nothing_is_remembered_across_salts_or_while_the_salt_is_unknown(salted):
    host = Bytes()
    tokenizer = cutting(host)
    for salt in ("a", "b", None, None):
        salted(salt)
        tokenizer.encode("|one|Q", add_special_tokens=False)
    assert host.encoded.count("one") == 4


def test_the_memory_is_bounded_and_forgets_the_least_recently_used():
    remembered = Remembered(max_ids=10)
    for name in (b"a", b"b", b"c"):
        remembered.put(name, [1] * 4)
        remembered.get(b"a")
    assert (remembered.get(b"a"), remembered.get(b"b")) == ([1] * 4, None)
    remembered.put(b"d", [1] * 11)
    assert remembered.get(b"d") is None
    dice = random.Random(5)
    for _ in range(2_000):
        remembered.put(dice.randbytes(1), [0] * dice.randrange(12))
        assert remembered.n_ids == sum(map(len, remembered._ids.values())) <= 10
