"""Router and engine cut a chat alike, from its body alone."""

import json

import pytest

from hypic_engine.contract import chat
from hypic_engine.contract.segments import head_digest
from hypic_engine.errors import RequestError

SEP = "<<PIC_SEP>>"
SYSTEM = {"role": "system", "content": "Answer from the notes."}


def part(text):
    return {"type": "text", "text": text}


def marked(text):
    return part(text) | {"cache_control": {"type": "ephemeral"}}


def body(*contents, **fields):
    users = [{"role": "user", "content": content} for content in contents]
    return {"messages": [SYSTEM, *users], **fields}


def head(fields):
    content = chat.cut(fields, SEP).head
    return None if content is None else json.loads(content)


@pytest.mark.parametrize(
    ("contents", "pieces"),
    [
        (["plain"], ()),
        ([f"x{SEP}one{SEP}two{SEP}Q"], ("one", "two")),
        ([f"{SEP}{SEP}one{SEP}{SEP}Q"], ("one",)),
        ([f"x{SEP}one{SEP}y", f"z{SEP}two{SEP}Q"], ("one", None, "two")),
        ([[part(f"x{SEP}one{SEP}y"), part("Q")]], ("one",)),
        ([[marked("one"), marked("two"), part("Q")]], ("one", "two")),
        ([[part("x"), marked("one"), part("a"), part("b"), marked("two")]], ("one", "ab", "two")),
        ([[marked("one"), part("Q")], [marked("two"), part("Q")]], ("one", None, "two")),
        ([[marked(""), marked("one"), part("Q")]], ("one",)),
        ([[marked(f"o{SEP}ne"), part(f"Q{SEP}Q")]], (f"o{SEP}ne",)),
        ([None, 3, [3, {"type": "image_url"}, {"text": 4}]], ()),
    ],
)
def test_a_chat_is_cut_at_marked_parts_or_else_at_separators(contents, pieces):
    assert chat.cut(body(*contents), SEP).pieces == pieces


def test_a_plain_chat_has_no_head_of_its_own():
    assert head(body("plain")) is None
    assert chat.cut({"messages": "odd"}, SEP) == chat.Cut()


def test_the_head_is_all_that_comes_before_the_first_cut():
    at_part = head(body([part("intro"), marked("one"), part("Q")]))
    assert at_part == {"messages": [SYSTEM, {"role": "user", "content": [part("intro")]}]}
    at_separator = head(body(f"intro{SEP}one{SEP}Q"))
    assert at_separator == {"messages": [SYSTEM, {"role": "user", "content": "intro"}]}
    in_part = head(body([part("a"), part(f"b{SEP}c")]))
    assert in_part["messages"][1]["content"] == [part("a"), part("b")]


def test_what_comes_after_the_first_cut_is_not_part_of_the_head():
    contents = [[marked("one"), part("Q")], [marked("two"), part("another Q")]]
    assert len({chat.cut(body([content][0]), SEP).head for content in contents}) == 1


@pytest.mark.parametrize(
    "field", ["tools", "tool_choice", "chat_template_kwargs", "reasoning_effort"]
)
def test_whatever_a_template_writes_into_the_head_names_it(field):
    content = [marked("one"), part("Q")]
    assert chat.cut(body(content, **{field: "x"}), SEP).head != chat.cut(body(content), SEP).head
    assert chat.cut(body(content, **{field: None}), SEP).head == chat.cut(body(content), SEP).head


def test_fields_in_another_order_and_fields_that_do_not_matter_change_no_name():
    one = body([marked("one"), part("Q")], max_tokens=3)
    other = json.loads(json.dumps(one, sort_keys=True)) | {"max_tokens": 4, "stream": True}
    assert chat.cut(one, SEP).head == chat.cut(other, SEP).head


@pytest.mark.parametrize("mark", ["ephemeral", True, ["x"]])
def test_a_mark_that_is_no_object_is_refused_by_the_name_of_its_field(mark):
    odd = part("one") | {"cache_control": mark}
    with pytest.raises(RequestError, match="must be an object") as refused:
        chat.cut(body([part("x"), odd]), SEP)
    assert refused.value.field == "messages[1].content[1].cache_control"


def test_the_name_of_a_head_is_what_it_was():
    content = chat.cut(body([marked("one"), part("Q")], tools=[{"type": "function"}]), SEP).head
    assert head_digest(content, model="tiny-qwen3.5") == "c1802b6f0f26277a4238d600ee0399fd"
