"""A queue with a limit (`--max-queued-requests`) counts requests, not the fills they wait for."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from .conftest import PIC, running
from .prompts import documents, joined

LIMIT = 3
FEW = ("--max-running-requests", "1", "--max-queued-requests", str(LIMIT))
GENERATE = "/generate"


@pytest.fixture(scope="module")
def limited(tiny, tmp_path_factory):
    """An engine that runs one request, and lets three wait."""
    yield from running(tiny, tmp_path_factory, *PIC, *FEW)


def body(prompt):
    return {"text": prompt, "sampling_params": {"temperature": 0, "max_new_tokens": 4}}


def test_many_fills_of_few_requests_do_not_fill_the_queue(limited):
    prompts = [joined(*documents(seed, *[90] * 12), "Which?") for seed in range(LIMIT)]
    with ThreadPoolExecutor(LIMIT) as clients:
        answers = list(clients.map(lambda one: limited.post(GENERATE, body(one)), prompts))
    assert [status for status, _ in answers] == [200] * LIMIT
    assert limited.info["segments"] == LIMIT * 12


def test_what_a_full_queue_refuses_is_told_so_and_the_rest_is_answered_as_alone(limited):
    limited.flush()
    pieces = documents(70, *[90] * 12)
    prompts = [joined(*pieces[n:], *pieces[:n], "Which?") for n in range(12)]
    with ThreadPoolExecutor(len(prompts)) as clients:
        answers = list(clients.map(lambda one: limited.post(GENERATE, body(one)), prompts))
    refused = [(status, str(answer)) for status, answer in answers if status != 200]
    assert 0 < len(refused) <= len(prompts) - LIMIT
    assert all(status == 503 and "queue is full" in answer for status, answer in refused), refused
    for prompt, (status, answer) in zip(prompts, answers, strict=True):
        alone = limited.post(GENERATE, body(prompt))
        assert alone[0] == 200
        if status == 200:
            assert answer["output_ids"] == alone[1]["output_ids"]
    assert limited.info["pinned_segments"] == 0
