"""An answer tells where its prompt's tokens came from, on every route, streamed or whole."""

import pytest

from .prompts import documents, joined

SEAM = 8
HEAD, A, B, LONG = documents(240, 30, 90, 120, 200)
QUESTION = "Which of them is it?"
SEGMENTS = joined(HEAD, A, B, QUESTION)
REUSED = len(HEAD + A + B) - 3 * SEAM
ROUTES = ["/generate", "/v1/completions", "/v1/chat/completions"]


def body_of(route, prompt, pic):
    custom = {} if pic is None else {"custom_params": {"pic": pic}}
    sampling = {"temperature": 0, "max_new_tokens": 3}
    if route == "/generate":
        return {"text": prompt, "sampling_params": sampling | custom}
    asked = {"prompt": prompt}
    if route == "/v1/chat/completions":
        asked = {"messages": [{"role": "user", "content": prompt}]}
    return {"model": "any", "max_tokens": 3, "temperature": 0} | asked | custom


def told(engine, route, prompt, *, stream=False, pic=None):
    """Cached tokens and details of an answer, whatever they are called there."""
    body = body_of(route, prompt, pic)
    if stream:
        wish = {"stream_options": {"include_usage": True}} if route != "/generate" else {}
        answer = engine.pieces(route, body | wish)[-1]
    else:
        status, answer = engine.post(route, body)
        assert status == 200, answer
    if route == "/generate":
        return answer["meta_info"]["cached_tokens"], answer["meta_info"]["pic"]
    usage = answer["usage"]
    return usage["prompt_tokens_details"]["cached_tokens"], usage["pic"]


@pytest.fixture(params=ROUTES)
def route(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def stream(request):
    return request.param


@pytest.fixture
def fresh(engine):
    engine.flush()
    return engine


def test_a_plain_prompt_tells_what_the_prefix_tree_had(fresh, route, stream):
    cold, details = told(fresh, route, LONG, stream=stream)
    assert cold == details["reused"] == details["radix"] == 0
    cached, details = told(fresh, route, LONG + " And then?", stream=stream)
    assert 0 < cached <= len(LONG) + 40
    assert details["found"] == details["reused"] == details["radix"] == cached
    assert details["segments"] == {"hit": 0, "filled": 0, "in_place": 0}
    assert details["moved"] == details["recomputed"] == 0


def test_a_prompt_of_segments_tells_what_segments_had_and_nothing_of_the_tree(fresh, route, stream):
    told(fresh, route, SEGMENTS, stream=stream)
    cached, details = told(fresh, route, SEGMENTS, stream=stream)
    assert details["segments"] == {"hit": 3, "filled": 0, "in_place": 0}
    assert details["radix"] == 0
    assert cached == details["reused"] == details["found"] - details["recomputed"]
    assert details["recomputed"] == 3 * SEAM
    assert cached >= REUSED  # the head of a chat has the template's words too


def test_segments_that_are_computed_in_place_are_told(fresh, route):
    told(fresh, route, SEGMENTS)
    cached, details = told(fresh, route, SEGMENTS, pic={"recompute": "all"})
    assert cached == details["found"] == details["radix"] == 0
    assert details["segments"] == {"hit": 0, "filled": 0, "in_place": 3}


def test_who_opts_out_has_prefixes_and_no_segments(fresh, route):
    told(fresh, route, SEGMENTS)
    assert told(fresh, route, SEGMENTS, pic={"enabled": False})[0] == 0
    cached, details = told(fresh, route, SEGMENTS + " Well?", pic={"enabled": False})
    assert cached == details["radix"] > 0
    assert details["segments"] == {"hit": 0, "filled": 0, "in_place": 0}


def test_a_batch_adds_what_its_prompts_had_of_either_kind(fresh):
    fresh.generate(LONG)
    fresh.generate(SEGMENTS)
    body = {"model": "any", "prompt": [LONG + " So?", SEGMENTS], "max_tokens": 2}
    status, answer = fresh.post("/v1/completions", body)
    assert status == 200, answer
    usage = answer["usage"]
    assert usage["pic"]["reused"] == usage["prompt_tokens_details"]["cached_tokens"]
    assert usage["pic"]["reused"] - usage["pic"]["radix"] == REUSED
    assert usage["pic"]["radix"] > 0


def test_sglang_s_own_details_say_the_same(fresh):
    assert fresh.generate(LONG)["meta_info"]["cached_tokens_details"] is None
    for prompt in (LONG + " So?", SEGMENTS, SEGMENTS):
        meta = fresh.generate(prompt)["meta_info"]
        sources = meta["cached_tokens_details"] or {"device": 0, "host": 0}
        assert sources == {"device": meta["cached_tokens"], "host": 0}
