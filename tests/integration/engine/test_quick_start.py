"""The first three requests of every user, on every endpoint, streamed and not."""

import pytest

SEPARATOR = "<<PIC_SEP>>"
SEAM = 8
EIFFEL = "The Eiffel Tower is in Paris, France."
FUJI = "Mount Fuji is the tallest mountain in Japan."
HEAD = "You are a helpful assistant."
QUESTION = "Question: In which country is the Eiffel Tower?"
PROMPT = SEPARATOR.join([HEAD, EIFFEL, FUJI, QUESTION])
HITS = len(EIFFEL) + len(FUJI) - 2 * SEAM
ALL_HITS = HITS + len(HEAD) - SEAM


@pytest.fixture
def warmed(engine):
    """An engine that has seen each document once, as a prompt of its own."""
    engine.flush()
    for document in (EIFFEL, FUJI):
        assert engine.generate(document, n_tokens=1)["meta_info"]["cached_tokens"] == 0
    return engine


def completion(engine, **fields):
    body = {"model": "any", "prompt": PROMPT, "max_tokens": 8, "temperature": 0, **fields}
    status, answer = engine.post("/v1/completions", body)
    assert status == 200, answer
    return answer


def cached(usage) -> int:
    return usage["prompt_tokens_details"]["cached_tokens"]


def test_both_documents_are_found_in_another_prompt(warmed):
    first = warmed.generate(PROMPT)["meta_info"]
    assert first["cached_tokens"] == HITS
    assert first["prompt_tokens"] == len(PROMPT) - 3 * len(SEPARATOR)
    assert first["pic"]["segments"] == {"hit": 2, "filled": 1, "in_place": 0}
    assert first["pic"]["found"] == len(EIFFEL) + len(FUJI)
    assert first["pic"]["recomputed"] == 2 * SEAM
    again = warmed.generate(PROMPT)["meta_info"]
    assert again["cached_tokens"] == ALL_HITS
    assert again["pic"]["segments"] == {"hit": 3, "filled": 0, "in_place": 0}


def test_the_order_of_documents_does_not_matter_to_hits(warmed):
    warmed.generate(PROMPT)
    turned = SEPARATOR.join([HEAD, FUJI, EIFFEL, QUESTION])
    assert warmed.generate(turned)["meta_info"]["cached_tokens"] == ALL_HITS


def test_completions_report_the_hits_in_their_usage(warmed):
    usage = completion(warmed)["usage"]
    assert cached(usage) == HITS
    assert usage["prompt_tokens"] == len(PROMPT) - 3 * len(SEPARATOR)


def test_a_streamed_completion_says_the_same_and_reports_usage_last(warmed):
    whole = completion(warmed)["choices"][0]["text"]
    body = {"model": "any", "prompt": PROMPT, "max_tokens": 8, "temperature": 0}
    events = warmed.pieces("/v1/completions", body | {"stream_options": {"include_usage": True}})
    assert "".join(e["choices"][0]["text"] for e in events if e["choices"]) == whole
    assert cached(events[-1]["usage"]) == ALL_HITS


def test_a_streamed_generate_says_the_same(warmed):
    whole = warmed.generate(PROMPT)
    sampling = {"temperature": 0, "max_new_tokens": 8}
    events = warmed.pieces("/generate", {"text": PROMPT, "sampling_params": sampling})
    assert events[-1]["text"] == whole["text"]
    assert events[-1]["meta_info"]["cached_tokens"] == ALL_HITS
    assert events[-1]["meta_info"]["pic"]["segments"]["hit"] == 3


def chat(content):
    messages = [{"role": "system", "content": HEAD}, {"role": "user", "content": content}]
    return {"model": "any", "messages": messages, "max_tokens": 8, "temperature": 0}


def test_separators_inside_a_chat_message_cut_it(warmed):
    content = SEPARATOR.join(["Notes:", EIFFEL, FUJI, QUESTION])
    status, answer = warmed.post("/v1/chat/completions", chat(content))
    assert status == 200, answer
    assert cached(answer["usage"]) == HITS
    body = chat(content) | {"stream_options": {"include_usage": True}}
    events = warmed.pieces("/v1/chat/completions", body)
    deltas = [e["choices"][0]["delta"].get("content") or "" for e in events if e["choices"]]
    assert "".join(deltas) == answer["choices"][0]["message"]["content"]
    assert cached(events[-1]["usage"]) > HITS


def test_ids_with_segment_ends_find_what_text_left(warmed):
    pieces = [list(piece.encode()) for piece in (HEAD, EIFFEL, FUJI, QUESTION)]
    ends = [sum(map(len, pieces[: n + 1])) for n in range(3)]
    ids = [token for piece in pieces for token in piece]
    by_ids = warmed.generate(ids, pic={"segment_ends": ends})
    assert by_ids["meta_info"]["cached_tokens"] == HITS
    assert by_ids["output_ids"] == warmed.generate(PROMPT)["output_ids"]


def test_a_batch_and_several_samples_each_get_the_answer_of_one(warmed):
    alone = warmed.generate(PROMPT)["text"]
    sampling = {"temperature": 0, "max_new_tokens": 8}
    status, batch = warmed.post(
        "/generate", {"text": [PROMPT, PROMPT], "sampling_params": sampling}
    )
    assert status == 200
    assert [answer["text"] for answer in batch] == [alone, alone]
    choices = completion(warmed, n=3)["choices"]
    assert [choice["text"] for choice in choices] == [alone] * 3
    assert sorted(choice["index"] for choice in choices) == [0, 1, 2]


def test_a_request_that_opts_out_neither_reads_nor_fills(warmed):
    held = warmed.info["segments"]
    answer = warmed.generate(PROMPT, pic={"enabled": False})
    assert answer["meta_info"]["cached_tokens"] == 0
    assert answer["meta_info"]["pic"]["found"] == 0
    assert answer["meta_info"]["pic"]["segments"] == {"hit": 0, "filled": 0, "in_place": 0}
    assert warmed.info["segments"] == held


def test_named_segments_are_computed_in_place(warmed):
    answer = warmed.generate(PROMPT, pic={"recompute": [1]})["meta_info"]
    assert answer["cached_tokens"] == len(FUJI) - SEAM
    assert answer["pic"]["segments"] == {"hit": 1, "filled": 1, "in_place": 1}


def test_no_new_token_and_logprobs_of_new_ones_are_served(warmed):
    none = warmed.generate(PROMPT, n_tokens=0)["meta_info"]
    assert none["completion_tokens"] <= 1
    plain = warmed.generate(PROMPT)["output_ids"]
    asked = warmed.generate(PROMPT, return_logprob=True)
    assert asked["output_ids"] == plain
    assert [token for _, token, _ in asked["meta_info"]["output_token_logprobs"]] == plain
