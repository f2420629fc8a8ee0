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


def restart(server, _):
    server.restart()


HAPPENINGS: tuple[Callable[..., None], ...] = (
    *(other_order, eviction, plain, flush, duplicates, abort),
)


def test_fifty_histories_lead_to_the_same_tokens(small):
    small.flush()
    wanted = ask(small, PROBE)
    dice = random.Random(13)
    for number in range(N_HISTORIES):
        happened = dice.choices(HAPPENINGS, k=dice.randrange(1, 3))
        if number == N_HISTORIES // 2:
            happened.append(restart)
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


def test_what_a_partly_cached_prompt_had_to_compute_is_found_from_then_on(engine):
    """LMCache/LMCache #2029: new segments beside a hit were not stored."""
    engine.flush()
    a, b, c = documents(14, 90, 80, 70)

    def reused(*bodies: str) -> int:
        prompt = joined(HEAD, *bodies, QUESTION)
        return engine.generate(prompt, n_tokens=2)["meta_info"]["cached_tokens"]

    def without_seams(*found: str) -> int:
        return sum(len(segment) - 8 for segment in found)

    assert reused(a, b) == 0
    assert reused(c, a) == without_seams(HEAD, a)
    assert reused(b, c) == without_seams(HEAD, b, c)
    assert reused(c, b, a) == without_seams(HEAD, a, b, c)


def test_an_engine_with_more_memory_gives_the_same_tokens(small, engine):
    engine.flush()
    wanted = [ask(small, PROBE), ask(small, DOCUMENTS[1])]
    assert [ask(engine, PROBE), ask(engine, DOCUMENTS[1])] == wanted
    assert [ask(engine, PROBE), ask(engine, DOCUMENTS[1])] == wanted


def test_no_counter_tells_one_salt_what_another_has_cached(small):
    """Neither cached tokens nor details nor what was moved or filled differ from a first time."""
    small.flush()

    def told(salt: str):
        details = small.generate(PROBE, extra_key=salt)["meta_info"]["pic"]
        return {k: v for k, v in details.items() if not k.endswith("_ms")}

    first = told("one")
    assert told("two") == first
    assert told("one")["reused"] > first["reused"] == 0
