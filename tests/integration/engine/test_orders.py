"""Warm, pin and evict: what an operator of an engine may have its cache do."""

import json
import threading

import pytest

from hypic_engine.contract import segments

from ...support.waiting import eventually
from .prompts import documents, joined
from .test_control import held
from .test_draining import asked

FIRST, SECOND, THIRD, BIG = documents(140, 60, 80, 40, 300)


def told(server, path, body, *, method="POST"):
    status, _, raw = asked(server, path, method=method, body=body)
    return status, json.loads(raw)


def digest(server, text, salt=""):
    return segments.text_digest(text, model=str(server.model), salt=salt)


def warmed(server, *pieces, salt=""):
    status, answer = told(server, "/pic/warm", {"segments": list(pieces), "salt": salt})
    assert status == 200, answer
    return answer["segments"]


def found(server, *pieces, salt=None):
    fields = {} if salt is None else {"extra_key": salt}
    return server.generate(joined(*pieces, "question"), **fields)["meta_info"]["pic"]["found"]


def test_what_was_warmed_is_found_by_the_first_prompt_as_text_and_as_ids(small):
    small.flush()
    first, second = warmed(small, FIRST, list(SECOND.encode()))
    expected = {"stored": True, "was_held": False, "tokens": len(FIRST)}
    assert first == expected | {"digest": digest(small, FIRST)}
    assert second["tokens"] == len(SECOND)
    assert {d for item in held(small) for d in item.digests} >= {first["digest"], second["digest"]}
    assert found(small, FIRST, SECOND) == len(FIRST) + len(SECOND)


def test_warming_again_says_that_it_was_there(small):
    small.flush()
    warmed(small, FIRST)
    assert warmed(small, FIRST)[0]["was_held"] is True
    assert len(held(small)) == 1


def test_what_was_warmed_for_one_salt_is_not_found_by_another(small):
    small.flush()
    assert warmed(small, FIRST, salt="a")[0]["digest"] == digest(small, FIRST, "a")
    assert found(small, FIRST, salt="b") == 0
    assert found(small, FIRST, salt="a") == len(FIRST)


def test_what_cannot_be_stored_is_named_beside_what_was(small):
    small.flush()
    short, long, bad, good = warmed(small, "abc", documents(141, 900)[0], [5, 99_999], THIRD)
    assert (short["stored"], long["stored"], bad["stored"]) == (False, False, False)
    assert "shorter than 6 tokens" in short["reason"]
    assert "tokens of KV memory" in long["reason"]
    assert "input_ids" in bad["reason"]
    assert good["stored"] is True


def test_warming_goes_on_behind_an_answer_that_does_not_wait(small):
    small.flush()
    body = {"segments": [FIRST, SECOND, THIRD], "wait": False}
    assert told(small, "/pic/warm", body) == (202, {"accepted": 3})
    eventually(lambda: len(held(small)) == 3)


def test_pinned_segments_leave_after_all_others(small):
    small.flush()
    warmed(small, FIRST)
    names = {"digests": [digest(small, FIRST)]}
    status, answer = told(small, "/pic/pin", names)
    assert (status, answer["segments"], answer["pinned_tokens"]) == (200, 1, len(FIRST))
    for seed in range(142, 146):
        small.generate(joined(*documents(seed, 200, 200), "question"))
    assert found(small, FIRST) == len(FIRST)
    assert told(small, "/pic/pin", names, method="DELETE")[1]["pinned_tokens"] == 0


def test_no_more_than_a_share_of_the_memory_can_be_pinned(small):
    small.flush()
    warmed(small, BIG, *documents(151, 250, 240))
    assert small.info["pins"] == {"segments": 0, "tokens": 0, "limit_tokens": 600}
    status, answer = told(small, "/pic/pin", {"all": True})
    assert status == 400
    assert "at most 600" in answer["error"]
    assert small.info["pins"]["segments"] == 0
    assert told(small, "/pic/pin", {"digests": [digest(small, BIG)]})[0] == 200
    assert told(small, "/pic/evict", {"all": True})[1]["pinned_tokens"] == 0


def test_pinned_segments_make_room_before_a_prompt_is_stuck(small):
    small.flush()
    warmed(small, BIG, documents(152, 290)[0])
    assert told(small, "/pic/pin", {"all": True})[1]["segments"] == 2
    assert small.generate(joined(*documents(153, 280, 280), "question"))["output_ids"]
    small.flush()
    assert small.info["pins"]["segments"] == 0


@pytest.mark.parametrize("by", ["keys", "digests", "salt", "all"])
def test_what_was_evicted_is_gone_and_nothing_else(small, by):
    small.flush()
    warmed(small, FIRST, salt="mine")
    warmed(small, SECOND, salt="theirs")
    name = digest(small, FIRST, "mine")
    key = next(item.key for item in held(small) if name in item.digests)
    body = {"keys": {"keys": [key]}, "digests": {"digests": [name]}, "salt": {"salt": "mine"}}
    status, answer = told(small, "/pic/evict", body.get(by, {"all": True}))
    assert (status, answer["segments"]) == (200, 2 if by == "all" else 1)
    assert found(small, FIRST, salt="mine") == 0
    assert found(small, SECOND, salt="theirs") == (0 if by == "all" else len(SECOND))


def test_the_salt_of_those_without_one_is_empty(small):
    small.flush()
    warmed(small, FIRST)
    warmed(small, SECOND, salt="mine")
    assert told(small, "/pic/evict", {"salt": ""})[1]["segments"] == 1
    assert found(small, SECOND, salt="mine") == len(SECOND)


def test_evicting_under_load_loses_nothing_and_changes_no_answer(engine):
    engine.flush()
    prompt = joined(*documents(154, 80, 90, 70), "question")
    alone = engine.generate(prompt, n_tokens=12)["output_ids"]
    answers = []
    threads = [
        threading.Thread(
            target=lambda: answers.append(engine.generate(prompt, n_tokens=12)["output_ids"])
        )
        for _ in range(12)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert told(engine, "/pic/evict", {"all": True})[0] == 200
    assert answers == [alone] * 12
    assert told(engine, "/pic/evict", {"all": True})[1]["in_use"] == 0
    slots = engine.info["operator_slots"]
    assert (slots["free"], engine.info["tokens"]) == (slots["total"], 0)


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("/pic/pin", {}, "body"),
        ("/pic/evict", {"digest": ["x"]}, "digest: is unknown"),
        ("/pic/evict", {"keys": "all"}, "keys"),
        ("/pic/warm", {"segments": []}, "segments"),
        ("/pic/warm", {"segments": ["ab"] * 513}, "at most 512"),
    ],
)
def test_bad_orders_are_refused_with_the_field(engine, path, body, named):
    status, answer = told(engine, path, body)
    assert status == 400
    assert named in answer["error"]


def test_an_engine_that_drains_warms_nothing(engine):
    told(engine, "/pic/drain", {"deadline_s": 9})
    assert told(engine, "/pic/warm", {"segments": [FIRST]})[0] == 503
    told(engine, "/pic/drain", None, method="DELETE")
