import pytest

from hypic_router.core import breaker as breakers
from hypic_router.core import budget as budgets
from hypic_router.core.breaker import CLOSED, FAILURES_TO_OPEN, FIRST_OPEN_S, LONGEST_OPEN_S
from hypic_router.core.budget import RESERVE, SHARE, Budget
from hypic_router.core.workers import IDLE, Load


def opened(now_s=0.0):
    breaker = CLOSED
    for _ in range(FAILURES_TO_OPEN):
        breaker = breakers.failed(breaker, now_s)
    return breaker


def test_a_breaker_opens_after_failures_in_a_row_and_only_then():
    breaker = CLOSED
    for _ in range(FAILURES_TO_OPEN - 1):
        breaker = breakers.failed(breaker, 0.0)
        assert breaker.admits(0.0)
    assert breakers.succeeded(breaker) == CLOSED
    assert not breakers.failed(breaker, 0.0).admits(0.0)


def test_an_open_breaker_admits_one_request_after_its_pause():
    breaker = opened()
    assert breaker.state(0.0) == "open"
    assert not breaker.admits(FIRST_OPEN_S - 0.1)
    assert breaker.state(FIRST_OPEN_S) == "half-open"
    assert breaker.admits(FIRST_OPEN_S)
    assert not breakers.sent(breaker).admits(FIRST_OPEN_S)
    assert breakers.succeeded(breakers.sent(breaker)).state(FIRST_OPEN_S) == "closed"


def test_a_trial_that_says_nothing_lets_the_next_one_try():
    breaker = breakers.released(breakers.sent(opened()))
    assert breaker.admits(FIRST_OPEN_S)
    assert breakers.released(CLOSED) is CLOSED
    assert breakers.sent(CLOSED) is CLOSED


def test_failed_trials_make_the_pause_longer_up_to_a_limit():
    breaker, now_s, pauses = opened(), 0.0, []
    for _ in range(8):
        pauses.append(breaker.until_s - now_s)
        now_s = breaker.until_s
        breaker = breakers.failed(breakers.sent(breaker), now_s)
    assert pauses[:3] == [FIRST_OPEN_S, 2 * FIRST_OPEN_S, 4 * FIRST_OPEN_S]
    assert max(pauses) == LONGEST_OPEN_S


def test_failures_of_requests_under_way_do_not_prolong_the_pause():
    breaker = opened()
    assert breakers.failed(breaker, 0.5).until_s == breaker.until_s


def test_a_budget_is_earned_by_requests_and_spent_by_retries():
    budget = Budget()
    for _ in range(int(RESERVE)):
        assert budget.allows()
        budget = budgets.spent(budget)
    assert not budget.allows()
    assert budgets.spent(budget).left == 0.0
    for _ in range(int(1 / SHARE) + 1):
        budget = budgets.earned(budget)
    assert budget.allows()
    assert budgets.earned(Budget()).left == RESERVE


def test_work_that_was_counted_is_taken_back_to_the_last_bit():
    load = IDLE.with_work(100.0, ["a", "b"]).with_work(50.0, ["b"])
    assert (load.requests, load.tokens) == (2, 150.0)
    assert load.with_less(500.0).tokens == 0.0
    load = load.without_work(100.0, ["a", "b"])
    assert load.filling.get("a") is None
    assert load.filling.get("b") == 1
    done = load.without_work(50.0, ["b"])
    assert (done.requests, done.tokens, len(done.filling)) == (0, 0.0, 0)


@pytest.mark.parametrize("tokens", [0.1, 1e9])
def test_an_idle_engine_has_no_work_whatever_was_rounded(tokens):
    assert Load(1, tokens).without_work(0.05, []).tokens == 0.0
