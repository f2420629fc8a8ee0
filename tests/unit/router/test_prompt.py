import json

import pytest

from hypic_engine.contract import chat
from hypic_engine.contract.segments import head_digest, ids_digest, salt_of, text_digest
from hypic_engine.errors import RequestError
from hypic_router.core.prompt import (
    DEFAULT_OUTPUT_TOKENS,
    Endpoint,
    Names,
    UnknownModelError,
    prompt,
)

SEP = "<<PIC_SEP>>"
NAMES = Names("tiny", SEP, 4)
HEAD = "what comes before the first cut of a chat"
CHAT, COMPLETIONS, GENERATE = Endpoint.CHAT, Endpoint.COMPLETIONS, Endpoint.GENERATE


def read(endpoint, body, names=NAMES):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return prompt(endpoint, raw, names)


def texts(*pieces, **scope):
    return [text_digest(piece, model="tiny", **scope) for piece in pieces]


def digests(found):
    return [segment.digest for segment in found.segments]


def user(content):
    return {"messages": [{"role": "user", "content": content}]}


def marked(text):
    """A part that is one segment."""
    return {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}


def head(body):
    return head_digest(chat.cut(body, SEP).head, model="tiny")


def part(text):
    return {"type": "text", "text": text}


@pytest.mark.parametrize(
    ("endpoint", "body", "pieces"),
    [
        (GENERATE, {"text": f"head{SEP}one{SEP}two{SEP}Q"}, ["head", "one", "two"]),
        (GENERATE, {"text": f"{SEP}one{SEP}{SEP}Q{SEP}"}, ["one"]),
        (GENERATE, {"text": "no separator"}, []),
        (GENERATE, {"text": [f"a{SEP}Q", "plain", f"b{SEP}Q"]}, ["a", "b"]),
        (COMPLETIONS, {"prompt": f"head{SEP}one{SEP}Q"}, ["head", "one"]),
        (COMPLETIONS, {"prompt": [f"a{SEP}Q", f"b{SEP}Q"]}, ["a", "b"]),
        (CHAT, user(f"head{SEP}one{SEP}two{SEP}Q"), [HEAD, "one", "two"]),
        (CHAT, user(f"head{SEP}Q"), [HEAD]),
        (CHAT, user([part(f"x{SEP}one{SEP}y"), part("z")]), [HEAD, "one"]),
        (CHAT, user([marked("one"), marked("two"), part("Q")]), [HEAD, "one", "two"]),
        (CHAT, user([marked(f"x{SEP}y"), part(f"{SEP}Q")]), [HEAD, f"x{SEP}y"]),
        (CHAT, user(None), []),
        (CHAT, user([3, {"type": "image_url"}, {"text": 4}]), []),
        (CHAT, {"messages": ["odd", None]}, []),
        (CHAT, {"messages": "odd"}, []),
        (COMPLETIONS, {"prompt": {"odd": 1}}, []),
        (COMPLETIONS, {"prompt": [None, "", f"a{SEP}Q"]}, ["a"]),
        (GENERATE, {"input_embeds": [[0.1]]}, []),
    ],
)
def test_segments_are_the_pieces_that_the_router_can_name(endpoint, body, pieces):
    names = [head(body) if piece is HEAD else texts(piece)[0] for piece in pieces]
    assert digests(read(endpoint, body)) == names


def test_ids_are_cut_at_the_given_ends():
    ids = list(range(10))
    pic = {"custom_params": {"pic": {"segment_ends": [3, 7]}}}
    expected = [ids_digest(ids[:3], model="tiny"), ids_digest(ids[3:7], model="tiny")]
    found = read(GENERATE, {"input_ids": ids, "sampling_params": pic})
    assert digests(found) == expected
    assert (found.n_ids, found.n_bytes) == (10, 0)
    assert [segment.n_ids for segment in found.segments] == [3, 4]
    assert digests(read(COMPLETIONS, {"prompt": ids, **pic})) == expected


def test_each_prompt_of_a_batch_has_its_own_options():
    params = [{"custom_params": {"pic": {"segment_ends": [n]}}} for n in (1, 2)]
    found = read(GENERATE, {"input_ids": [[1, 2, 3], [4, 5, 6]], "sampling_params": params})
    assert digests(found) == [ids_digest([1], model="tiny"), ids_digest([4, 5], model="tiny")]


def test_ends_past_the_prompt_and_ids_that_are_none_name_nothing():
    pic = {"custom_params": {"pic": {"segment_ends": [0, 9]}}}
    assert digests(read(GENERATE, {"input_ids": [1, 2, 3], "sampling_params": pic})) == []
    pic = {"custom_params": {"pic": {"segment_ends": [2]}}}
    assert digests(read(GENERATE, {"input_ids": [1, -2, 3], "sampling_params": pic})) == []


def test_salt_and_adapter_are_part_of_every_name():
    body = {"text": f"a{SEP}Q", "cache_salt": "s", "extra_key": "k", "lora_path": "l"}
    assert digests(read(GENERATE, body)) == texts("a", adapter="l", salt=salt_of("s", "k"))


def test_an_adapter_in_the_models_name_wins_but_not_on_generate():
    body = {"model": "tiny:poet", "lora_path": "l", "prompt": f"a{SEP}Q", "text": f"a{SEP}Q"}
    assert digests(read(COMPLETIONS, body)) == texts("a", adapter="poet")
    assert digests(read(GENERATE, body)) == texts("a", adapter="l")
    assert digests(read(COMPLETIONS, {**body, "model": "tiny:"})) == texts("a", adapter="l")


@pytest.mark.parametrize("odd", [{"cache_salt": ["a"]}, {"extra_key": 3}, {"lora_path": ["l"]}])
def test_a_salt_or_adapter_of_an_odd_form_names_nothing(odd):
    assert digests(read(GENERATE, {"text": f"a{SEP}Q", **odd})) == []
    ids = {
        "input_ids": [1, 2],
        "sampling_params": {"custom_params": {"pic": {"segment_ends": [1]}}},
    }
    assert digests(read(GENERATE, {**ids, **odd})) == []


def test_another_model_is_unknown_except_where_the_engine_reads_no_name():
    body = {"prompt": f"a{SEP}Q", "text": f"a{SEP}Q", "model": "gpt-4"}
    with pytest.raises(UnknownModelError, match="'gpt-4' is not served here; 'tiny' is"):
        read(COMPLETIONS, body)
    assert digests(read(GENERATE, body)) == texts("a")


@pytest.mark.parametrize("model", ["tiny", "tiny:", None, 3])
def test_a_request_without_another_models_name_is_served(model):
    assert digests(read(COMPLETIONS, {"prompt": f"a{SEP}Q", "model": model})) == texts("a")


@pytest.mark.parametrize(
    ("pic", "pieces"),
    [
        ({"enabled": False}, []),
        ({"recompute": [0, 2]}, ["b"]),
        ({"recompute": "all"}, []),
    ],
)
def test_segments_that_must_not_come_from_the_cache_do_not_count(pic, pieces):
    text = SEP.join("abcQ")
    params = {"sampling_params": {"custom_params": {"pic": pic}}}
    assert digests(read(GENERATE, {"text": text, **params})) == texts(*pieces)


def test_pieces_of_a_chat_are_counted_from_the_head_that_the_template_makes():
    body = {
        "messages": [
            {"role": "system", "content": f"s{SEP}one{SEP}"},
            {"role": "user", "content": f"{SEP}two{SEP}Q"},
        ],
        "custom_params": {"pic": {"recompute": [1]}},
    }
    names = Names("tiny", SEP, 9)
    assert digests(read(CHAT, body, names)) == [head(body), *texts("two")]


@pytest.mark.parametrize(
    ("endpoint", "body", "field", "words"),
    [
        (CHAT, b"", "body", "is empty"),
        (CHAT, b"{", "body", "is not JSON"),
        (CHAT, b'{"a": NaN}', "body", "NaN is not JSON"),
        (CHAT, b"[" * 99_999, "body", "is not JSON"),
        (CHAT, b"3", "body", "must be a JSON object, got int"),
        (CHAT, {}, "messages", "no prompt"),
        (CHAT, {"messages": []}, "messages", "no prompt"),
        (COMPLETIONS, {}, "prompt", "no prompt"),
        (COMPLETIONS, {"prompt": ""}, "prompt", "no prompt"),
        (COMPLETIONS, {"prompt": []}, "prompt", "no prompt"),
        (COMPLETIONS, {"prompt": SEP * 2}, "prompt", "only separators"),
        (GENERATE, {}, "text", "is missing"),
        (GENERATE, {"text": ""}, "text", "no prompt"),
        (GENERATE, {"text": SEP}, "text", "only separators"),
        (GENERATE, {"input_ids": []}, "input_ids", "no prompt"),
        (GENERATE, {"text": SEP.join("abcdef")}, "prompt", "6 segments; at most 4 segments"),
        (CHAT, user(SEP.join("abcdef")), "prompt", "6 segments; at most 4 segments"),
        (
            GENERATE,
            {"text": "a", "sampling_params": {"custom_params": {"pic": {"segments": 1}}}},
            "custom_params.pic",
            "unknown field",
        ),
    ],
)
def test_what_cannot_be_served_is_refused_by_the_name_of_its_field(endpoint, body, field, words):
    with pytest.raises(RequestError, match=words) as refused:
        read(endpoint, body)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("endpoint", "more", "tokens"),
    [
        (CHAT, {}, DEFAULT_OUTPUT_TOKENS),
        (CHAT, {"max_tokens": 10}, 10),
        (CHAT, {"max_tokens": 10, "max_completion_tokens": 7, "n": 3}, 21),
        (CHAT, {"max_tokens": -1}, 1),
        (CHAT, {"max_tokens": 10**9}, 2_048),
        (CHAT, {"max_tokens": "x", "n": "y"}, DEFAULT_OUTPUT_TOKENS),
        (GENERATE, {"sampling_params": {"max_new_tokens": 4, "n": 2}}, 8),
        (GENERATE, {"sampling_params": [{"max_new_tokens": 4}]}, 4),
        (GENERATE, {"sampling_params": "odd"}, DEFAULT_OUTPUT_TOKENS),
        (GENERATE, {"sampling_params": []}, DEFAULT_OUTPUT_TOKENS),
    ],
)
def test_what_may_be_generated_is_read_or_guessed(endpoint, more, tokens):
    body = {**user("hello"), "text": "hello", **more}
    assert read(endpoint, body).output_tokens == tokens


def test_only_true_asks_for_a_stream():
    assert read(CHAT, {**user("x"), "stream": True}).stream
    assert not read(CHAT, {**user("x"), "stream": None}).stream


def test_sizes_are_in_bytes_of_text():
    found = read(GENERATE, {"text": f"é{SEP}ab"})
    assert found.n_bytes == 2 + len(SEP) + 2
    assert found.segments[0].n_bytes == 2
    assert read(CHAT, user("\ud83d end")).n_bytes == 7


def test_equal_beginnings_have_equal_names():
    one, same = read(CHAT, user("x" * 2_000 + "a")), read(CHAT, user("x" * 2_000 + "b"))
    assert one.prefix == same.prefix != read(CHAT, user("y")).prefix


def test_the_turns_of_a_conversation_begin_alike_and_other_conversations_do_not():
    def said(*contents):
        roles = ("system", "user", "assistant", "user")
        pairs = zip(roles, contents, strict=False)
        return {"messages": [{"role": role, "content": content} for role, content in pairs]}

    first = read(CHAT, said("Be brief.", "Where is the quay?"))
    later = read(CHAT, said("Be brief.", "Where is the quay?", "North.", "And the lock?"))
    other = read(CHAT, said("Be brief.", "When is high tide?"))
    assert first.prefix == later.prefix != other.prefix
