import json

import pytest

from hypic_engine.errors import RequestError
from hypic_router.core import pairs
from hypic_router.core.choose import candidates, choose, nobody, partner
from hypic_router.core.prompt import Prompt
from hypic_router.core.score import POLICIES
from hypic_router.core.workers import Address, Fleet, Health, Load, Role, State, Worker

READY = Health(State.READY, "")


def worker(name, role, revision="r1", health=READY, tokens=0.0):
    at = Address(name, f"http://{name}", role=role, revision=revision, bootstrap=("10.0.0.1", 8998))
    return Worker(at, health, load=Load(1, tokens) if tokens else Load())


def prefill(name="p", **more):
    return worker(name, Role.PREFILL, **more)


def decode(name="d", **more):
    return worker(name, Role.DECODE, **more)


def names(workers):
    return [one.at.name for one in workers]


def test_a_prefill_engine_starts_requests_only_with_decode_of_its_revision_kserve_6218():
    fleet = Fleet(
        (prefill("p1"), prefill("p2", revision="r2"), decode("d1"), worker("b", Role.BOTH))
    )
    assert names(candidates(fleet, (), 0.0)) == ["p1", "b"]
    assert names(pairs.partners(fleet, fleet.workers[0], ())) == ["d1"]


@pytest.mark.parametrize("tried", [("d",), ("p+d",), ("p",)])
def test_engines_and_pairs_that_failed_are_not_asked_again(tried):
    fleet = Fleet((prefill(), decode()))
    assert candidates(fleet, tried, 0.0) == []
    assert names(candidates(Fleet((*fleet.workers, decode("d2"))), ("p+d",), 0.0)) == ["p"]


def test_decode_engines_that_take_nothing_make_no_pair():
    gone = Health(State.UNREADY, "loading")
    assert candidates(Fleet((prefill(), decode(health=gone))), (), 0.0) == []


def chosen(*workers, turn=0):
    fleet = Fleet(workers)
    choice = choose(Prompt(n_bytes=400), fleet, POLICIES["segment"], turn=turn, now_s=0.0)
    assert choice is not None
    return choice, partner(choice, fleet, turn=turn, now_s=0.0)


def test_the_decode_engine_with_the_least_work_is_the_partner():
    _, other = chosen(prefill(), decode("d1", tokens=9.0), decode("d2", tokens=5.0))
    assert other is not None
    assert other.worker.at.name == "d2"
    assert other.cold_tokens == 0


def test_equal_partners_take_turns():
    found = [chosen(prefill(), decode("d1"), decode("d2"), turn=turn)[1] for turn in (0, 1)]
    assert {one.worker.at.name for one in found if one is not None} == {"d1", "d2"}


def test_a_late_partner_is_asked_when_there_is_no_other():
    late = Health(State.LATE, "silent")
    _, other = chosen(prefill(), decode("d1", health=late))
    assert other is not None
    _, other = chosen(prefill(), decode("d1", health=late), decode("d2", tokens=9.0))
    assert other is not None
    assert other.worker.at.name == "d2"


def test_an_engine_that_does_both_needs_no_partner():
    assert chosen(worker("b", Role.BOTH))[1] is None


@pytest.mark.parametrize("body", [b"{}", b'{ "a": {"b": 1} } \n', b'{"bootstrap_room": 1}'])
def test_the_room_is_added_at_the_end_where_it_wins(body):
    at = prefill().at
    fields = json.loads(pairs.with_room(body, at, 5))
    told = {"bootstrap_host": "10.0.0.1", "bootstrap_port": 8998, "bootstrap_room": 5}
    assert fields == {**json.loads(body), **told}


def test_a_body_in_another_encoding_is_refused():
    with pytest.raises(RequestError, match="UTF-8"):
        pairs.with_room('{"a": 1}'.encode("utf-16"), prefill().at, 5)


UNREADY = Health(State.UNREADY, "loading")


@pytest.mark.parametrize(
    ("engines", "words"),
    [
        ([prefill()], "(no decode engine is ready)"),
        ([decode()], "(no prefill engine is ready)"),
        ([prefill(), decode(health=UNREADY)], "(no decode engine is ready; d is unready: loading)"),
        (
            [prefill(), decode(revision="r2")],
            "(no prefill and decode engine have the same revision)",
        ),
        ([worker("b", Role.BOTH, health=UNREADY)], "(b is unready: loading)"),
    ],
)
def test_who_is_refused_is_told_what_is_missing_of_a_pair(engines, words):
    assert nobody(Fleet(tuple(engines)), ()).endswith(words)
