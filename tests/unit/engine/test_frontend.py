"""What a request says about its segments, checked and sent along."""

from types import SimpleNamespace

import pytest

from hypic_engine.contract import segments
from hypic_engine.plugin.front import chat
from hypic_engine.plugin.front.frontend import Frontend
from hypic_engine.plugin.front.tokens import CuttingTokenizer, Marks
from hypic_engine.plugin.settings import Settings


class Bytes:
    """One token a byte."""

    def encode(self, text, **_):
        return list(text.encode())


def cut(text=None, ids=None, *, settings=None, **fields):
    frontend = Frontend(settings or Settings(enabled=True, separator="|"), Marks())
    config = SimpleNamespace(vocab_size=256)
    manager = SimpleNamespace(served_model_name="m", model_config=config, tokenizer=Bytes())
    frontend.learn(None, manager)
    request = SimpleNamespace(
        text=text,
        input_ids=ids,
        sampling_params={},
        extra_key=None,
        input_embeds=None,
        return_logprob=False,
    )
    vars(request).update(fields)
    given = ids if ids is not None else manager.tokenizer.encode(text)
    arguments, _ = frontend.cut(manager, request, text, given)
    return arguments[1].sampling_params["custom_params"]["hypic"], arguments[3]


def pic(**wishes):
    return {"sampling_params": {"custom_params": {"pic": wishes}}}


def test_a_text_prompt_carries_the_digests_of_its_pieces():
    asked, kept = cut("head|body|query")
    assert kept == list(b"headbodyquery")
    assert asked["ends"] == [4, 8]
    expected = [segments.text_digest(t, model="m") for t in ("head", "body", "query")]
    assert asked["digests"] == expected


def test_a_plain_text_and_plain_ids_are_named_as_they_were_sent():
    assert cut("plain")[0]["digests"] == [segments.text_digest("plain", model="m")]
    assert cut(ids=[5, 6])[0]["digests"] == [segments.ids_digest([5, 6], model="m")]


def test_a_chats_head_is_named_by_its_messages():
    ids = CuttingTokenizer(Bytes(), separator="|", marks=Marks(), remembered=None).encode(
        "system|doc|q"
    )
    before = chat.head.set(b"messages")
    try:
        asked, _ = cut(ids=ids)
    finally:
        chat.head.reset(before)
    head = segments.head_digest(b"messages", model="m")
    assert asked["digests"][:2] == [head, segments.text_digest("doc", model="m")]


def test_ids_with_given_ends_get_digests_of_ids():
    asked, kept = cut(ids=[5, 6, 7], **pic(segment_ends=[2, 3]))
    assert (asked["ends"], kept) == ([2], [5, 6, 7])
    assert asked["digests"][0] == segments.ids_digest([5, 6], model="m")


def test_the_salt_is_part_of_the_digest():
    asked, _ = cut("a|b", extra_key="tenant")
    assert asked["digests"][0] == segments.text_digest("a", model="m", salt="tenant")


def test_a_client_cannot_speak_for_the_frontend():
    forged = {"custom_params": {"hypic": {"ends": [1]}, "own": 1}}
    asked, _ = cut("a|b", sampling_params=forged)
    assert asked["ends"] == [1]
    assert len(asked["digests"]) == 2


@pytest.mark.parametrize(
    ("text", "fields", "message"),
    [
        ("||", {}, "prompt: holds no token"),
        ("a|b|c", {"settings": Settings(separator="|", max_segments=2)}, "3 segments"),
        ("a", pic(recompute="x"), "recompute"),
        ("a", {"sampling_params": {"custom_params": {"pic": 3}}}, "custom_params.pic"),
        ("a|b", pic(segment_ends=[1]), "segment_ends: counts tokens"),
        ("ab", pic(segment_ends=[1]), "segment_ends: counts tokens"),
        ("a", {"input_embeds": [[0.5]]}, "input_embeds: cannot be combined"),
        (
            "a|b",
            {"return_logprob": True, "logprob_start_len": 0},
            "logprob_start_len: tokens taken",
        ),
        (None, {"ids": [1, 2, 3, 4], **pic(segment_ends=[2, 5])}, "outside the prompt of 4 tokens"),
    ],
)
def test_what_cannot_be_is_refused_with_the_fields_name(text, fields, message):
    with pytest.raises(ValueError, match=message):
        cut(text, **fields)


@pytest.mark.parametrize("wish", [{"recompute": "all"}, {"enabled": False}])
def test_logprobs_of_a_prompt_that_takes_nothing_from_the_cache_are_served(wish):
    asked, _ = cut("a|b", return_logprob=True, logprob_start_len=0, **pic(**wish))
    assert asked["ends"] == [1]


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
