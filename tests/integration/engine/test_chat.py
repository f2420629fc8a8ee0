"""Chats: marked parts and separators, through the chat template of the model, streamed and not."""

import pytest

from hypic_engine.contract import chat as contract
from hypic_engine.contract.segments import head_digest, text_digest

from .prompts import SEPARATOR, documents

SEAM = 8
SYSTEM = "Answer only from the notes."
A, B = documents(40, 300, 280)
QUESTION = "When was the reservoir drained?"
# What the model's template writes before the first part of a user's message.
HEAD = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n"
N_HEAD = len(HEAD) - len("<|im_start|><|im_end|><|im_start|>") + 3
HITS = len(A) + len(B) + N_HEAD - 3 * SEAM


def part(text):
    return {"type": "text", "text": text}


def marked(text):
    return part(text) | {"cache_control": {"type": "ephemeral"}}


def body(*contents, **fields):
    users = [{"role": "user", "content": content} for content in contents]
    messages = [{"role": "system", "content": SYSTEM}, *users]
    return {"model": "any", "messages": messages, "max_tokens": 8, "temperature": 0} | fields


@pytest.fixture
def ask(engine):
    """Asks an engine whose cache was empty at the start of the test."""
    engine.flush()

    def asked(*contents, **fields):
        status, answer = engine.post("/v1/chat/completions", body(*contents, **fields))
        assert status == 200, answer
        return answer

    return asked


def text_of(answer) -> str:
    return answer["choices"][0]["message"]["content"]


def cached(answer) -> int:
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def test_all_parts_reach_the_model_in_their_order(ask):
    whole = ask(A + B + QUESTION)
    parts = ask([part(A), part(B), part(QUESTION)])
    assert text_of(parts) == text_of(whole)
    assert parts["usage"]["prompt_tokens"] == whole["usage"]["prompt_tokens"]
    assert text_of(ask([part(B), part(A), part(QUESTION)])) != text_of(whole)


def test_marked_parts_hit_in_any_order(ask):
    cold = ask([marked(A), marked(B), part(QUESTION)])
    assert cached(cold) == 0
    assert cold["usage"]["pic"]["segments"] == {"hit": 0, "filled": 3, "in_place": 0}
    other = ask([marked(B), marked(A), part(QUESTION)])
    assert cached(other) == HITS
    assert other["usage"]["pic"]["segments"] == {"hit": 3, "filled": 0, "in_place": 0}
    assert other["usage"]["prompt_tokens"] == cold["usage"]["prompt_tokens"]


def test_marks_say_what_separators_say(ask):
    by_separators = ask(SEPARATOR.join(["", A, B, QUESTION]))
    by_marks = ask([marked(A), marked(B), part(QUESTION)])
    assert text_of(by_marks) == text_of(by_separators)
    assert by_marks["usage"]["prompt_tokens"] == by_separators["usage"]["prompt_tokens"]
    assert cached(by_marks) == HITS


def test_text_between_marked_parts_is_a_segment_and_separators_in_it_are_text(ask):
    odd = f"see {SEPARATOR} below"
    first = ask([marked(A), part(odd), marked(f"{B}{SEPARATOR}"), part(f"{SEPARATOR}{QUESTION}")])
    assert first["usage"]["pic"]["segments"] == {"hit": 0, "filled": 4, "in_place": 0}
    plain = ask([marked(A), marked(B), part(QUESTION)])
    more = 3 * len(SEPARATOR) + len("see  below")
    assert first["usage"]["prompt_tokens"] == plain["usage"]["prompt_tokens"] + more
    assert cached(plain) == len(A) + N_HEAD - 2 * SEAM


def test_parts_marked_in_several_messages_are_segments_each(ask):
    ask([marked(A), part("First?")], [marked(B), part(QUESTION)])
    again = ask([marked(B), part("First?")], [marked(A), part(QUESTION)])
    assert again["usage"]["pic"]["segments"] == {"hit": 4, "filled": 0, "in_place": 0}


def test_blanks_at_the_edges_of_a_marked_part_are_kept(ask):
    tight, loose = ask([marked(A), part("Q")]), ask([marked(f"\n {A} \n"), part("Q")])
    assert loose["usage"]["prompt_tokens"] == tight["usage"]["prompt_tokens"] + 4


def test_an_empty_marked_part_is_no_segment(ask):
    answer = ask([marked(""), marked(A), part(QUESTION)])
    assert answer["usage"]["pic"]["segments"] == {"hit": 0, "filled": 2, "in_place": 0}


def test_segments_of_a_chat_can_be_computed_in_place_or_left_out(ask):
    contents = [marked(A), marked(B), part(QUESTION)]
    whole = ask(contents)
    some = ask(contents, custom_params={"pic": {"recompute": [1]}})
    assert some["usage"]["pic"]["segments"] == {"hit": 2, "filled": 0, "in_place": 1}
    none = ask(contents, custom_params={"pic": {"enabled": False}})
    assert cached(none) == 0
    assert none["usage"]["prompt_tokens"] == whole["usage"]["prompt_tokens"]


def test_a_streamed_chat_tells_the_same_and_its_usage_last(engine, ask):
    contents = [marked(A), marked(B), part(QUESTION)]
    whole = ask(contents)
    events = engine.pieces(
        "/v1/chat/completions", body(contents, stream_options={"include_usage": True})
    )
    deltas = [e["choices"][0]["delta"].get("content") or "" for e in events if e["choices"]]
    assert "".join(deltas) == text_of(whole)
    usage = events[-1]["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] == usage["pic"]["reused"] == HITS
    assert usage["prompt_tokens"] == whole["usage"]["prompt_tokens"]


def test_a_router_knows_the_segments_of_a_chat_by_its_body(engine, ask):
    contents = [marked(A), part("between them"), marked(B), part(QUESTION)]
    ask(contents)
    held = {digest for item in engine.get("/pic/segments")["items"] for digest in item["digests"]}
    model = {"model": engine.get("/v1/models")["data"][0]["id"]}
    cut = contract.cut(body(contents), SEPARATOR)
    names = {head_digest(cut.head, **model)} | {text_digest(one, **model) for one in cut.pieces}
    assert len(names) == 4
    assert held == names


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ([part(A) | {"cache_control": "ephemeral"}], "messages[1].content[0].cache_control"),
        ([{"type": "hologram", "hologram": "x"}], "hologram"),
        ([{"type": "text"}], "text"),
    ],
)
def test_a_part_that_cannot_be_is_refused_by_name(engine, content, named):
    status, answer = engine.post("/v1/chat/completions", body(content))
    assert status == 400
    assert named in str(answer)


def test_a_message_without_parts_is_answered(ask):
    assert ask([])["usage"]["completion_tokens"] == 8
