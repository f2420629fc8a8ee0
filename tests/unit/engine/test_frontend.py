import asyncio
from types import SimpleNamespace

import pytest

from hypic_engine.contract import segments
from hypic_engine.errors import RequestError
from hypic_engine.plugin.front.frontend import Frontend, pieces
from hypic_engine.plugin.settings import Settings

SEP = 99


@pytest.mark.parametrize(
    ("ids", "kept", "ends"),
    [
        ([1, 2, SEP, 3, SEP, 4], [1, 2, 3, 4], [2, 3]),
        ([SEP, 1, SEP, SEP, 2, SEP], [1, 2], [1]),
        ([1, 2], [1, 2], []),
        ([SEP, SEP], [], []),
    ],
)
def test_separators_end_segments_and_never_reach_the_model(ids, kept, ends):
    assert pieces(ids, SEP, None) == (kept, ends)


def test_a_client_may_give_the_ends_itself():
    assert pieces([1, 2, 3, 4], SEP, (2, 4)) == ([1, 2, 3, 4], [2])
    with pytest.raises(RequestError, match="outside the prompt of 4 tokens"):
        pieces([1, 2, 3, 4], SEP, (2, 5))


class Manager:
    """What the hook uses of SGLang's tokenizer manager: one token a byte, 0x01 the separator."""

    served_model_name = "m"
    model_config = SimpleNamespace(vocab_size=256)
    tokenizer = SimpleNamespace(decode=lambda ids, **_: bytes(ids).decode())


def cut(text=None, ids=None, *, settings=None, **fields):
    frontend = Frontend(settings or Settings(enabled=True, separator="\x01"))
    frontend._separator = 1
    request = SimpleNamespace(text=text, sampling_params={}, extra_key=None)
    vars(request).update(fields)
    tokens = ids if ids is not None else list(text.encode())
    arguments, _ = frontend.cut(Manager(), request, text, tokens)
    return arguments[1].sampling_params["custom_params"]["hypic"], arguments[3]


def test_a_text_prompt_carries_the_digests_of_its_pieces():
    asked, kept = cut("head\x01body\x01query")
    assert kept == list(b"headbodyquery")
    assert asked["ends"] == [4, 8]
    expected = [segments.text_digest(t, model="m") for t in ("head", "body", "query")]
    assert asked["digests"] == expected


def test_tokens_of_a_chat_get_the_digests_of_their_text():
    asked, _ = cut(ids=list(b"system\x01doc\x01q"))
    assert asked["digests"][1] == segments.text_digest("doc", model="m")


def test_ids_with_given_ends_get_digests_of_ids():
    params = {"custom_params": {"pic": {"segment_ends": [2]}}}
    asked, _ = cut(ids=[5, 6, 7], sampling_params=params)
    assert asked["digests"][0] == segments.ids_digest([5, 6], model="m")


def test_the_salt_is_part_of_the_digest():
    asked, _ = cut("a\x01b", extra_key="tenant")
    assert asked["digests"][0] == segments.text_digest("a", model="m", salt="tenant")


def test_a_client_cannot_speak_for_the_frontend():
    forged = {"custom_params": {"hypic": {"ends": [1]}, "own": 1}}
    asked, _ = cut("a\x01b", sampling_params=forged)
    assert asked["ends"] == [1]
    assert len(asked["digests"]) == 2


@pytest.mark.parametrize(
    ("text", "fields", "message"),
    [
        ("\x01\x01", {}, "prompt: holds no token"),
        ("a\x01b\x01c", {"settings": Settings(separator="\x01", max_segments=2)}, "3 segments"),
        ("a", {"sampling_params": {"custom_params": {"pic": {"recompute": "x"}}}}, "recompute"),
        ("a", {"sampling_params": {"custom_params": {"pic": 3}}}, "custom_params.pic"),
    ],
)
def test_what_cannot_be_is_refused_with_the_fields_name(text, fields, message):
    with pytest.raises(ValueError, match=message):
        cut(text, **fields)


def test_details_become_meta_info_pic():
    async def responses():
        yield {"meta_info": {"cached_tokens_details": {"device": 5, "pic": {"reused": 5}}}}
        yield {"meta_info": {"cached_tokens_details": None}}

    async def collected():
        lifted = Frontend(Settings()).lift(lambda *_: responses())
        return [r["meta_info"] async for r in lifted]

    first, second = asyncio.run(collected())
    assert first == {"pic": {"reused": 5}, "cached_tokens_details": {"device": 5}}
    assert second == {"cached_tokens_details": None}


@pytest.mark.parametrize("foreign", [-1, 256, 1 << 70])
def test_ids_outside_the_vocabulary_are_refused_with_the_range(foreign):
    with pytest.raises(ValueError, match=r"input_ids: holds .*; ids run from 0 to 255"):
        cut(ids=[5, foreign, 6])


def test_what_is_no_id_is_refused_with_its_kind():
    with pytest.raises(ValueError, match="input_ids: must hold integers, got float"):
        cut(ids=[5, 1.5])
    with pytest.raises(ValueError, match="custom_params: must be an object, got list"):
        cut("a", sampling_params={"custom_params": [1]})
    with pytest.raises(ValueError, match="stop_token_ids: holds 999"):
        cut("a", sampling_params={"stop_token_ids": [999]})


def test_separators_and_given_ends_exclude_each_other():
    asks = {"custom_params": {"pic": {"segment_ends": [1]}}}
    with pytest.raises(ValueError, match="segment_ends: does not go with separators"):
        cut("a\x01b", sampling_params=asks)
