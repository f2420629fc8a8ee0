"""What requests may ask for beside their text: salts, samples, logprobs, batches; on all routes."""

import math

import pytest

from .prompts import SEPARATOR, documents, joined

SEAM = 8
HEAD, A, B, C = documents(41, 30, 300, 280, 260)
QUESTION = "When was the reservoir drained?"
PROMPT = joined(HEAD, A, B, QUESTION)
SAMPLING = {"temperature": 0, "max_new_tokens": 8}
ALL = {"custom_params": {"pic": {"recompute": "all"}}}


@pytest.fixture
def fresh(engine):
    engine.flush()
    return engine


def completion(engine, prompt=PROMPT, **fields):
    body = {"model": "any", "prompt": prompt, "max_tokens": 8, "temperature": 0} | fields
    status, answer = engine.post("/v1/completions", body)
    assert status == 200, answer
    return answer


def chat(engine, **fields):
    messages = [{"role": "user", "content": PROMPT}]
    body = {"model": "any", "messages": messages, "max_tokens": 8, "temperature": 0} | fields
    status, answer = engine.post("/v1/chat/completions", body)
    assert status == 200, answer
    return answer


def cached(answer) -> int:
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def test_every_segment_that_was_computed_once_is_found_whatever_it_stood_beside(fresh):
    hits = []
    for pieces in ((A, B), (C, A), (B, C), (C, B, A)):
        meta = fresh.generate(joined(*pieces, QUESTION))["meta_info"]
        hits.append(meta["pic"]["segments"]["hit"])
    assert hits == [0, 1, 2, 3]


@pytest.mark.parametrize("endpoint", [completion, chat], ids=["completions", "chat"])
@pytest.mark.parametrize("field", ["cache_salt", "extra_key"])
def test_only_the_same_salt_hits(fresh, endpoint, field):
    endpoint(fresh, **{field: "one"})
    assert cached(endpoint(fresh, **{field: "one"})) > 500
    assert cached(endpoint(fresh, **{field: "two"})) == 0
    assert cached(endpoint(fresh)) == 0


def test_a_salt_and_a_key_are_one_salt(fresh):
    completion(fresh, cache_salt="a", extra_key="b")
    assert cached(completion(fresh, cache_salt="ab")) > 500
    assert cached(completion(fresh, cache_salt="a")) == 0
    status, answer = fresh.post(
        "/generate", {"text": PROMPT, "sampling_params": SAMPLING, "extra_key": "ab"}
    )
    assert (status, answer["meta_info"]["pic"]["segments"]["hit"]) == (200, 3)


@pytest.mark.parametrize("stream", [False, True])
def test_several_samples_count_their_prompt_once(fresh, stream):
    alone = fresh.generate(PROMPT)
    fresh.flush()
    n_prompt = alone["meta_info"]["prompt_tokens"]
    for hits in (0, len(HEAD + A + B) - 3 * SEAM):
        if stream:
            body = {"model": "any", "prompt": PROMPT, "max_tokens": 8, "temperature": 0, "n": 3}
            events = fresh.pieces(
                "/v1/completions", body | {"stream_options": {"include_usage": True}}
            )
            texts = [
                "".join(
                    e["choices"][0]["text"]
                    for e in events
                    if e["choices"] and e["choices"][0]["index"] == index
                )
                for index in range(3)
            ]
            usage = events[-1]["usage"]
        else:
            answer = completion(fresh, n=3)
            texts = [choice["text"] for choice in answer["choices"]]
            assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2]
            usage = answer["usage"]
        assert texts == [alone["text"]] * 3
        assert usage["prompt_tokens"] == n_prompt
        assert usage["prompt_tokens_details"]["cached_tokens"] == hits
        assert usage["pic"]["reused"] == hits


def test_two_prompts_with_two_samples_each_are_counted_as_two_prompts(fresh):
    prompts = [joined(A, "One?"), joined(B, "Two?")]
    alone = [fresh.generate(prompt)["text"] for prompt in prompts]
    answer = completion(fresh, prompts, n=2)
    assert [choice["text"] for choice in answer["choices"]] == [alone[0]] * 2 + [alone[1]] * 2
    assert cached(answer) == len(A) + len(B) - 2 * SEAM
    assert answer["usage"]["pic"]["segments"] == {"hit": 2, "filled": 0, "in_place": 0}


def test_each_prompt_of_a_batch_may_have_its_own_segments(fresh):
    first, second = list((A + QUESTION).encode()), list((B + C + QUESTION).encode())
    ends = [[len(A)], [len(B), len(B) + len(C)]]
    sampling = [SAMPLING | {"custom_params": {"pic": {"segment_ends": own}}} for own in ends]
    body = {"input_ids": [first, second], "sampling_params": sampling}
    assert fresh.post("/generate", body)[0] == 200
    status, answers = fresh.post("/generate", body)
    assert status == 200
    assert [one["meta_info"]["pic"]["segments"]["hit"] for one in answers] == [1, 2]
    by_text = [fresh.generate(joined(*pieces, QUESTION)) for pieces in ((A,), (B, C))]
    assert [one["output_ids"] for one in answers] == [one["output_ids"] for one in by_text]


def test_completions_take_ids_with_their_ends(fresh):
    ids = list((HEAD + A + QUESTION).encode())
    ends = {"custom_params": {"pic": {"segment_ends": [len(HEAD), len(HEAD + A)]}}}
    by_ids = completion(fresh, ids, **ends)
    by_text = completion(fresh, joined(HEAD, A, QUESTION))
    assert by_ids["choices"][0]["text"] == by_text["choices"][0]["text"]
    assert cached(by_text) == len(HEAD + A) - 2 * SEAM


def test_a_prompt_says_how_long_it_waited_and_was_assembled(fresh):
    cold = fresh.generate(PROMPT)["meta_info"]["pic"]
    warm = fresh.generate(PROMPT)["meta_info"]["pic"]
    assert cold["fill_ms"] > 0
    assert warm["fill_ms"] == 0
    assert warm["assemble_ms"] > 0
    assert cold["moved"] == warm["moved"] == warm["reused"] == len(HEAD + A + B) - 3 * SEAM


def test_logprobs_of_a_prompt_that_uses_the_cache_are_refused_with_the_remedy(fresh):
    body = {"text": PROMPT, "sampling_params": SAMPLING, "return_logprob": True}
    status, answer = fresh.post("/generate", body | {"logprob_start_len": 0})
    assert status == 400
    assert "logprob_start_len" in str(answer)
    assert 'custom_params.pic.recompute "all"' in str(answer)


def test_logprobs_of_a_prompt_do_not_depend_on_what_is_cached_nor_change_the_answer(fresh):
    def asked(**fields):
        body = {"text": PROMPT, "sampling_params": SAMPLING | ALL, "return_logprob": True}
        status, answer = fresh.post("/generate", body | {"logprob_start_len": 0} | fields)
        assert status == 200, answer
        return answer

    cold = asked()
    fresh.generate(joined(HEAD, B, A, QUESTION))
    warm = asked()
    values = [
        [value for value, _, _ in one["meta_info"]["input_token_logprobs"]] for one in (cold, warm)
    ]
    assert len(values[0]) == len(values[1]) == cold["meta_info"]["prompt_tokens"]
    assert all(
        math.isclose(a, b, abs_tol=1e-4) for a, b in zip(values[0][1:], values[1][1:], strict=True)
    )
    assert asked(return_logprob=False)["text"] == cold["text"] == warm["text"]


def test_a_document_that_stands_twice_is_read_twice(fresh):
    """Cold, warm, and beside others in a batch: always the answer of a lone cold prompt."""
    prompt = joined(HEAD, A, B, A, QUESTION)
    cold = fresh.generate(prompt)
    assert cold["meta_info"]["pic"]["segments"] == {"hit": 0, "filled": 4, "in_place": 0}
    assert cold["output_ids"] != fresh.generate(joined(HEAD, A, B, QUESTION))["output_ids"]
    body = {"text": [prompt, joined(B, A, QUESTION), prompt], "sampling_params": SAMPLING}
    status, answers = fresh.post("/generate", body)
    assert status == 200
    assert answers[0]["output_ids"] == answers[2]["output_ids"] == cold["output_ids"]


def test_prompts_of_equal_lengths_never_read_each_others_documents(fresh):
    pairs = [documents(42 + n, 90, 90) for n in range(4)]
    prompts = [joined(*pair, QUESTION) for pair in pairs]
    cold = [fresh.generate(prompt)["output_ids"] for prompt in prompts]
    assert len(set(map(tuple, cold))) == len(cold)
    assert [fresh.generate(prompt)["output_ids"] for prompt in prompts] == cold
    status, answers = fresh.post("/generate", {"text": prompts, "sampling_params": SAMPLING})
    assert status == 200
    assert [answer["output_ids"] for answer in answers] == cold


def test_a_session_goes_on(fresh):
    status, session = fresh.post("/open_session", {"capacity_of_str_len": 4_000})
    assert status == 200
    turn = {"id": session, "rid": None, "offset": -1, "replace": True}
    first = fresh.generate("A first turn of a session.", session_params=turn)
    turn["rid"] = first["meta_info"]["id"]
    second = fresh.generate(f" And{SEPARATOR} a second.", session_params=turn)
    assert second["meta_info"]["prompt_tokens"] > first["meta_info"]["prompt_tokens"]
    assert fresh.post("/close_session", {"session_id": session})[0] == 200
