"""An answer depends on the prompt alone, not on what the cache went through before."""

import concurrent.futures
import random
import threading
from collections.abc import Callable

from .prompts import documents, joined

N_HISTORIES = 50
HEAD, *DOCUMENTS = documents(11, 30, 90, 64, 65, 40)
QUESTION = documents(12, 20)[0]
PROBE = joined(HEAD, DOCUMENTS[0], DOCUMENTS[1], DOCUMENTS[0], QUESTION)


def ask(server, prompt, **fields):
    return server.generate(prompt, n_tokens=6, **fields)["output_ids"]


def shuffled(dice: random.Random, question: str) -> str:
    bodies = dice.sample(DOCUMENTS, dice.randrange(1, 4))
    return joined(HEAD, *bodies, question)


def other_order(server, dice):
    ask(server, shuffled(dice, "order?"))


def eviction(server, dice):
    ask(server, joined(*documents(dice.randrange(1 << 30), 150, 150, 150, 10)))


def plain(server, dice):
    ask(server, dice.choice(DOCUMENTS))


def flush(server, _):
    server.flush()


def duplicates(server, dice):
    prompts = [PROBE, PROBE, shuffled(dice, "twice?")]
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        list(threads.map(lambda prompt: ask(server, prompt), prompts))


def abort(server, dice):
    """A prompt that is dropped while it fills or runs."""
    rid = f"dropped-{dice.random()}"
    sampling = {"max_new_tokens": 60, "ignore_eos": True}
    body = {"text": shuffled(dice, "dropped?"), "rid": rid, "sampling_params": sampling}
    thread = threading.Thread(target=server.post, args=("/generate", body, 60))
    thread.start()
    server.post("/abort_request", {"rid": rid})
    thread.join()


HAPPENINGS: tuple[Callable[..., None], ...] = (
    *(other_order, eviction, plain, flush, duplicates, abort),
)


def test_fifty_histories_lead_to_the_same_tokens(small):
    small.flush()
    wanted = ask(small, PROBE)
    dice = random.Random(13)
    for _ in range(N_HISTORIES):
        happened = dice.choices(HAPPENINGS, k=dice.randrange(1, 3))
        for happening in happened:
            happening(small, dice)
        assert ask(small, PROBE) == wanted, [happening.__name__ for happening in happened]


def test_salts_never_read_each_other(small):
    small.flush()
    answers = []
    for salt in ("one", "two", None):
        cold = small.generate(PROBE, extra_key=salt)
        assert cold["meta_info"]["cached_tokens"] == 0, salt
        warm = small.generate(PROBE, extra_key=salt)
        assert warm["meta_info"]["cached_tokens"] > 0, salt
        answers += [cold["output_ids"], warm["output_ids"]]
    assert len({tuple(answer) for answer in answers}) == 1


def test_a_salt_of_completions_keeps_others_out(small):
    small.flush()

    def cached(**fields) -> int:
        body = {"model": "any", "prompt": PROBE, "max_tokens": 2, "temperature": 0, **fields}
        status, answer = small.post("/v1/completions", body)
        assert status == 200, answer
        return (answer["usage"]["prompt_tokens_details"] or {"cached_tokens": 0})["cached_tokens"]

    assert cached(cache_salt="tenant") == 0
    assert cached(cache_salt="tenant") > 0
    assert cached(cache_salt="other") == 0
    assert cached() == 0


def test_a_plain_prompt_of_another_salt_is_no_segment_of_this_one(small):
    small.flush()
    small.generate(DOCUMENTS[0], extra_key="one", n_tokens=1)
    asked = joined(HEAD, DOCUMENTS[0], QUESTION)
    assert small.generate(asked, extra_key="two")["meta_info"]["cached_tokens"] == 0
    small.flush()
    small.generate(DOCUMENTS[0], extra_key="one", n_tokens=1)
    found = small.generate(asked, extra_key="one")["meta_info"]["cached_tokens"]
    assert found == len(DOCUMENTS[0]) - 8
