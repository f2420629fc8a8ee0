"""Router and engine name segments alike: splitting, digests, keys, vectors that must not move."""

import hashlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypic_engine.contract.segments import (
    CONTRACT_VERSION,
    entry_key,
    head_digest,
    ids_bytes,
    ids_digest,
    salt_of,
    split,
    text_digest,
)

SEP = "<<PIC_SEP>>"
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
IDS = st.lists(st.integers(0, 2**32 - 1), max_size=20)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("plain", ["plain"]),
        ("", []),
        (SEP, []),
        (SEP * 3, []),
        (f"a{SEP}b{SEP}c", ["a", "b", "c"]),
        (f"{SEP}a{SEP}{SEP}b{SEP}", ["a", "b"]),
        (f"a{SEP} {SEP}b", ["a", " ", "b"]),
        ("a<<PIC_SEP>b", ["a<<PIC_SEP>b"]),
        (f"a{SEP.lower()}b", [f"a{SEP.lower()}b"]),
    ],
)
def test_separators_cut_and_superfluous_ones_change_nothing(text, pieces):
    assert split(text, SEP) == pieces


@given(st.lists(st.text("ab <>_", max_size=5)))
def test_what_was_joined_by_separators_comes_apart_again(parts):
    assert split("\0".join(parts), "\0") == [part for part in parts if part]


# A change of any of these makes every router blind for every running engine: it needs another
# CONTRACT_VERSION, not another vector.
VECTORS = {
    "text": (
        text_digest("The Eiffel Tower is in Paris, France.", model="tiny-qwen3.5"),
        "14cb54e8ee9b6c3ddf66f7791b202ed4",
    ),
    "text, beyond ASCII, adapter and salt": (
        text_digest("café \U0001f600 \ud83d", model="m", adapter="a", salt="s"),
        "83afa7e8626aae6d01c1dd10843cd951",
    ),
    "nothing": (text_digest("", model=""), "29c992e59bb95c8cfa0f48aacc28d9c7"),
    "ids": (
        ids_digest([0, 1, 2**32 - 1], model="tiny-qwen3.5"),
        "14e5bf8153b9c406ddddfb596215986b",
    ),
    "no ids": (
        ids_digest([], model="m", adapter="a", salt="s"),
        "62a0e681b3f18c9f1a69944cd00ea581",
    ),
    "head": (
        head_digest(b'{"messages":[]}', model="tiny-qwen3.5", adapter="a", salt="s"),
        "73043341ba3a60d8e74f47765e7bbf43",
    ),
    "key": (
        entry_key(
            [1, 2, 3],
            model_revision="r1",
            adapter="",
            salt="",
            mode="transition_rope_recompute",
            seam="8",
        ),
        "70f0e7136a76a1568bf4829df2091119",
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_digests_are_what_they_were(name):
    made, written = VECTORS[name]
    assert made == written


def by_definition(*fields: bytes) -> str:
    joined = b"".join(struct.pack("<Q", len(field)) + field for field in fields)
    return hashlib.sha256(joined).hexdigest()[:32]


@given(ANY_TEXT, st.text(max_size=9), st.text(max_size=9), st.text(max_size=9))
def test_a_text_digest_is_the_hash_of_its_length_prefixed_fields(text, model, adapter, salt):
    content = text.encode("utf-8", "surrogatepass")
    fields = (CONTRACT_VERSION, "text", model, adapter, salt)
    expected = by_definition(*(field.encode() for field in fields), content)
    assert text_digest(text, model=model, adapter=adapter, salt=salt) == expected


@given(IDS, st.text(max_size=9))
def test_an_ids_digest_is_the_hash_of_little_endian_words(ids, model):
    content = b"".join(number.to_bytes(4, "little") for number in ids)
    assert ids_bytes(ids) == content
    fields = (CONTRACT_VERSION, "ids", model, "", "")
    expected = by_definition(*(field.encode() for field in fields), content)
    assert ids_digest(ids, model=model) == expected


@given(st.tuples(ANY_TEXT, ANY_TEXT), st.tuples(ANY_TEXT, ANY_TEXT))
def test_no_two_splits_of_the_same_letters_share_a_name(one, other):
    names = {
        text_digest(text, model=model.encode("utf-8", "replace").decode())
        for text, model in (one, other)
    }
    assert len(names) == len({(t, m.encode("utf-8", "replace")) for t, m in (one, other)})


@pytest.mark.parametrize("field", ["model_revision", "adapter", "salt", "mode", "seam"])
def test_everything_an_entry_depends_on_is_in_its_key(field):
    fields = {"model_revision": "r", "adapter": "", "salt": "", "mode": "m", "seam": "8"}
    assert entry_key([1], **fields) != entry_key([1], **{**fields, field: "x"})
    assert entry_key([1], **fields) != entry_key([2], **fields)


@pytest.mark.parametrize(
    ("cache_salt", "extra_key", "salt"),
    [("a", "b", "ab"), ("a", None, "a"), (None, "b", "b"), ("", "", ""), (None, None, "")],
)
def test_the_salt_is_what_sglang_hands_to_the_engine(cache_salt, extra_key, salt):
    assert salt_of(cache_salt, extra_key) == salt
