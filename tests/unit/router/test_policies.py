"""The policies against each other, on simulated engines."""

import pytest

from benchmarks.policies import best, drawn, simulate


@pytest.mark.parametrize("seed", [1, 2])
def test_on_two_engines_segments_are_found_nearly_as_often_as_can_be(seed):
    work = drawn(n_engines=2, memory=0.75, seed=seed)
    found = {policy: simulate(work, policy)[0] for policy in ("segment", "prefix_hash")}
    in_turn, evenness = simulate(work, "round_robin")[0], simulate(work, "segment")[1]
    assert found["segment"] > best(work, beam=100) - 0.03
    assert found["segment"] > max(found["prefix_hash"], in_turn) + 0.1
    assert evenness < 1.25


@pytest.mark.parametrize(("n_engines", "memory"), [(2, 1.0), (4, 0.75), (8, 0.5)])
def test_more_is_found_only_by_who_knows_the_future_or_is_less_even(n_engines, memory):
    work = drawn(n_engines=n_engines, memory=memory)
    share, evenness = simulate(work, "segment")
    assert share > best(work, busiest=evenness, beam=50) - 0.03


@pytest.mark.parametrize("n_engines", [2, 4])
def test_where_memory_holds_everything_no_policy_finds_more(n_engines):
    work = drawn(n_engines=n_engines)
    shares = {
        policy: simulate(work, policy)[0]
        for policy in ("segment", "least_load", "prefix_hash", "round_robin")
    }
    assert shares["segment"] == max(shares.values())
    assert best(work) - shares["segment"] < best(work) - shares["round_robin"]
