import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypic_router.core.caches import heat as heats
from hypic_router.core.caches.heat import Heat, after_request, charge, copies


def asked(*requests, now_s=1.0, heat=None):
    heat = heat or Heat()
    for digests in requests:
        heat = after_request(heat, digests, now_s)
    return heat


def test_nothing_is_hot_before_there_was_traffic():
    assert Heat().share("a") == 0.0
    assert asked(["a"]).share("a") < 0.2


def test_a_share_is_of_the_requests_however_often_one_names_a_segment():
    heat = asked(*[["a", "a", "b"]] * 500, *[["b"]] * 500)
    assert heat.share("a") == pytest.approx(0.5, abs=0.02)
    assert heat.share("b") == pytest.approx(1.0, abs=0.02)
    assert [digest for digest, _ in heat.hottest(5)] == ["b", "a"]


def test_what_was_asked_for_long_ago_is_forgotten():
    heat = asked(*[["old"]] * 100)
    heat = asked(["new"], now_s=70.0, heat=heat)
    assert heat.share("old") > 0.5
    heat = asked(["new"], now_s=140.0, heat=heat)
    assert heat.share("old") == 0.0
    heat = asked(["late"], now_s=900.0, heat=heat)
    assert heat.share("new") == 0.0


def test_a_flood_of_segments_is_not_kept(monkeypatch):
    monkeypatch.setattr(heats, "WINDOW_SEGMENTS", 200)
    heat = asked(*([f"{i}"] for i in range(5_000)))
    assert len(heat.now.asked) + len(heat.before.asked) < 1_000


@given(st.floats(0, 1), st.integers(1, 64))
def test_copies_follow_the_share_and_never_pass_the_engines(share, n_engines):
    most = copies(share, n_engines)
    assert min(share * n_engines, n_engines) <= most <= n_engines
    assert most <= share * n_engines + 2


@given(st.floats(0, 1), st.integers(1, 64), st.integers(1, 64))
def test_each_further_copy_is_charged_at_least_as_much(share, n_copies, n_engines):
    assert charge(share, n_copies, n_engines) <= charge(share, n_copies + 1, n_engines)
    assert charge(share, 0, n_engines) == 1.0
