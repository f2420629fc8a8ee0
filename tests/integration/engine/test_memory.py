"""A pool of 1200 tokens: what does not fit waits or is refused, and nothing is lost."""

import concurrent.futures
import random

import pytest

from ...support.waiting import eventually
from .prompts import documents, joined

POOL_TOKENS = 1200
HEAD = documents(20, 20)[0]


@pytest.fixture
def empty(small):
    small.flush()
    assert small.info["kv_tokens"] == POOL_TOKENS
    return small


def drawn(seed: int, *lengths: int) -> str:
    return joined(HEAD, *documents(seed, *lengths))


def at_once(server, prompts, *, n_tokens=8):
    def ask(prompt):
        sampling = {"temperature": 0, "max_new_tokens": n_tokens, "ignore_eos": True}
        return server.post("/generate", {"text": prompt, "sampling_params": sampling}, 90)

    with concurrent.futures.ThreadPoolExecutor(len(prompts)) as threads:
        return list(threads.map(ask, prompts))


def everything_is_free(server) -> bool:
    server.flush()
    info = server.info
    slots = info["operator_slots"]
    held = (info["segments"], info["tokens"], info["prefix_tokens"])
    return (*held, slots["free"]) == (0, 0, 0, slots["total"])


def test_segments_leave_under_pressure_and_no_operator_slot_is_lost(empty):
    for seed in range(12):
        empty.generate(drawn(seed, 150, 120, 10))
        info = empty.info
        assert info["tokens"] <= POOL_TOKENS
        assert info["pinned_segments"] == 0
        assert info["operator_slots"]["total"] - info["operator_slots"]["free"] == info["segments"]
    assert everything_is_free(empty)


def test_a_prompt_that_can_never_fit_is_refused_with_numbers(empty):
    body = {"text": drawn(30, 300, 300, 20), "sampling_params": {"max_new_tokens": 4}}
    status, answer = empty.post("/generate", body)
    assert status == 400
    message = answer["error"]["message"]
    assert "tokens of KV memory" in message
    assert f"this server has {POOL_TOKENS}" in message
    assert empty.generate(drawn(31, 100, 20))["output_ids"]
    assert everything_is_free(empty)


def test_more_segments_than_operator_slots_are_refused_with_the_flag(empty):
    n_slots = empty.info["operator_slots"]["total"]
    body = {"text": drawn(32, *[6] * (n_slots + 1), 5), "sampling_params": {"max_new_tokens": 4}}
    status, answer = empty.post("/generate", body)
    assert (status, "--pic-memory-gib" in answer["error"]["message"]) == (400, True)


def test_a_prompt_that_just_fits_is_answered_whatever_it_may_generate(empty):
    for n_tokens in (1, 4, 5000):
        for length in range(POOL_TOKENS // 2 - 14, POOL_TOKENS // 2):
            body = joined(*documents(length, length, 7))
            sampling = {"temperature": 0, "max_new_tokens": n_tokens, "stop": list("aeiou ")}
            status, answer = empty.post(
                "/generate", {"text": body, "sampling_params": sampling}, 60
            )
            if status == 400:
                assert "tokens of KV memory" in answer["error"]["message"]
                break
            assert status == 200, answer
        else:
            pytest.fail("no length was too long")
    assert everything_is_free(empty)


def test_prompts_that_are_together_larger_than_the_pool_are_all_answered(empty):
    prompts = [drawn(seed, 130, 110, 90, 20) for seed in range(40, 48)]
    alone = [answer["output_ids"] for _, answer in (at_once(empty, [p])[0] for p in prompts)]
    empty.flush()
    answers = at_once(empty, prompts)
    assert [status for status, _ in answers] == [200] * 8
    assert [answer["output_ids"] for _, answer in answers] == alone
    assert everything_is_free(empty)


def test_a_fill_behind_a_plain_prompt_that_waits_for_it_runs(empty):
    """The plain prompt fits only when the other one has let go of what it holds."""
    held = documents(50, 150, 150)
    empty.generate(joined(*held, "warm"))
    waiter = joined(*held, *documents(51, 40), "q")
    plain = documents(52, 900)[0]
    for _ in range(4):
        batch = at_once(empty, [documents(53, 200)[0], waiter, plain], n_tokens=4)
        assert [status for status, _ in batch] == [200] * 3


def test_one_batch_never_takes_what_another_prompt_of_the_same_pass_was_promised(empty):
    """A plain prompt that needs evictions, beside one that pins what would be evicted."""
    for seed in range(60, 66):
        held = documents(seed, 140, 140)
        empty.generate(joined(*held, "warm"))
        big = documents(seed + 100, 850)[0]
        asked = {
            "text": ["x" * 300, big, joined(*held, "question"), documents(seed + 200, 400)[0]],
            "sampling_params": {"temperature": 0, "max_new_tokens": 2},
        }
        status, answers = empty.post("/generate", asked, 90)
        assert (status, len(answers)) == (200, 4)


def test_long_answers_that_outgrow_the_pool_are_retracted_and_end_right(empty):
    prompts = [drawn(seed, 60, 60, 10) for seed in range(70, 74)]
    alone = [at_once(empty, [prompt], n_tokens=200)[0][1]["output_ids"] for prompt in prompts]
    answers = at_once(empty, prompts, n_tokens=200)
    assert [status for status, _ in answers] == [200] * 4
    assert [answer["output_ids"] for _, answer in answers] == alone
    assert sum(answer["meta_info"]["num_retractions"] for _, answer in answers) > 0
    assert everything_is_free(empty)


def test_random_load_leaves_nothing_behind(empty):
    dice = random.Random(80)
    pool = documents(81, 20, 40, 80, 120, 160, 60, 9)
    prompts = [joined(*dice.sample(pool, dice.randrange(1, 5)), f"q{n}") for n in range(48)]
    for start in range(0, len(prompts), 12):
        answers = at_once(empty, prompts[start : start + 12], n_tokens=dice.choice((1, 5, 40)))
        assert {status for status, _ in answers} == {200}
    eventually(lambda: empty.info["pinned_segments"], until=lambda pinned: pinned == 0)
    assert everything_is_free(empty)


def test_a_document_that_is_asked_for_now_and_then_outlives_a_thousand_chat_turns(empty):
    document = documents(90, 150)[0]
    asked = [joined(HEAD, document, f"question {n}") for n in range(23)]
    for prompt in asked[:3]:
        empty.generate(prompt, n_tokens=2)
    sampling = {"temperature": 0, "max_new_tokens": 2}
    for n, prompt in enumerate(asked[3:]):
        chats = [f"chat {n}: " + turn for turn in documents(91 + n, *[30] * 50)]
        status, answers = empty.post("/generate", {"text": chats, "sampling_params": sampling}, 300)
        assert (status, len(answers)) == (200, 50)
        reused = empty.generate(prompt, n_tokens=2)["meta_info"]["pic"]["reused"]
        assert reused == len(HEAD) + len(document) - 16
    assert everything_is_free(empty)


def test_requests_that_run_at_once_share_the_copies_of_what_they_place_alike(empty):
    """Five copies of their own would not fit."""
    bodies = documents(119, 150, 100)
    prompts = [joined(HEAD, *bodies, f"q{n}") for n in range(5)]
    alone = [at_once(empty, [prompt], n_tokens=40)[0][1]["output_ids"] for prompt in prompts]
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        asked, seen = thread.submit(at_once, empty, prompts, n_tokens=40), []
        while not asked.done():
            info = empty.info
            seen.append((info["running"], info["copied_tokens"]))
    assert [answer["output_ids"] for _, answer in asked.result()] == alone
    n_interiors = sum(len(segment) - 8 for segment in (HEAD, *bodies))
    assert {copied for _, copied in seen} <= {0, n_interiors}
    assert any(running > 1 and copied for running, copied in seen)
    assert everything_is_free(empty)
    assert empty.info["copied_tokens"] == 0


def test_plain_prompts_are_kept_twice_and_their_copies_leave_first(empty):
    """As prefixes and, in slots of their own, as segments on probation."""
    plain = documents(120, 300, 300)
    for prompt in plain:
        empty.generate(prompt, n_tokens=1)
    info = empty.info
    assert (info["segments"], info["tokens"]) == (2, 600)
    assert info["prefix_tokens"] >= 2 * 256
    empty.generate(documents(121, 200)[0], n_tokens=1)  # there is room for copies or for it
    assert empty.info["tokens"] <= 200
    for prompt in plain:
        assert empty.generate(prompt, n_tokens=1)["meta_info"]["cached_tokens"] > 0
    assert everything_is_free(empty)


def test_a_plain_prompt_that_went_on_from_a_prefix_leaves_no_segment(empty):
    beginning = documents(122, 200)[0]
    empty.generate(beginning, n_tokens=1)
    longer = empty.generate(beginning + documents(123, 60)[0], n_tokens=1)
    assert longer["meta_info"]["cached_tokens"] > 0
    assert empty.info["segments"] == 1
    assert everything_is_free(empty)


def test_a_cache_with_no_room_for_any_segment_still_answers_plain_prompts(empty):
    body = {"text": drawn(124, 1300, 20), "sampling_params": {"max_new_tokens": 4}}
    assert empty.post("/generate", body)[0] == 400
    plain = documents(125, 1100)[0]
    first, again = (empty.generate(plain, n_tokens=4) for _ in range(2))
    assert first["output_ids"] == again["output_ids"]
    assert everything_is_free(empty)
