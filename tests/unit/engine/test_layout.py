import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypic_engine.core.layout import Seam, cacheable, layout, segments


@pytest.mark.parametrize(
    ("width", "length", "expected"),
    [(8, 100, 8), (8, 15, 7), (8, 1, 0), (0, 50, 0), (0.25, 100, 25), (1, 100, 50), (2, 3, 1)],
)
def test_a_seam_is_a_width_or_a_fraction_and_never_more_than_half(width, length, expected):
    assert Seam(width).n_tokens(length) == expected


def test_a_seam_reads_as_the_user_wrote_it():
    assert [str(Seam(width)) for width in (8, 0.25, 0)] == ["8", "0.25", "0"]


@pytest.mark.parametrize(
    ("length", "width", "expected"), [(5, 8, False), (6, 8, True), (6, 0, True), (2, 0, False)]
)
def test_a_segment_is_cacheable_when_its_interior_feeds_the_convolution(length, width, expected):
    assert cacheable(length, seam=Seam(width), min_tokens=6) is expected


def test_a_minimum_below_the_convolutions_tail_does_not_help():
    assert not cacheable(4, seam=Seam(8), min_tokens=1)
    assert cacheable(5, seam=Seam(8), min_tokens=1)


def test_segments_end_where_told_and_the_query_is_last():
    cut = segments([3, 7, 10], 10)
    assert [(s.index, s.start, s.end) for s in cut] == [(0, 0, 3), (1, 3, 7), (2, 7, 10)]
    assert [s.length for s in cut] == [3, 4, 3]


def test_a_prompt_without_ends_is_one_segment():
    assert [(s.start, s.end) for s in segments([], 5)] == [(0, 5)]


def test_runs_and_interiors_alternate():
    plan = layout(segments([20, 40], 50), seam=Seam(8), min_tokens=6)
    assert plan.runs == ((0, 8), (20, 28), (40, 50))
    assert [(i.start, i.end, i.seam, i.length) for i in plan.interiors] == [
        (8, 20, 8, 12),
        (28, 40, 8, 12),
    ]
    assert (plan.n_moved, plan.n_computed) == (24, 26)


def test_a_segment_computed_in_place_joins_its_neighbours_run():
    cut = segments([20, 40, 60], 70)
    plan = layout(cut, seam=Seam(8), min_tokens=6, in_place=lambda index: index == 1)
    assert plan.runs == ((0, 8), (20, 48), (60, 70))


def test_a_short_segment_is_computed_in_place():
    assert layout(segments([5], 20), seam=Seam(8), min_tokens=6).runs == ((0, 20),)


def test_without_a_seam_a_run_may_be_empty():
    assert layout(segments([10, 20], 25), seam=Seam(0), min_tokens=6).runs == (
        (0, 0),
        (10, 10),
        (20, 25),
    )


def test_what_was_generated_before_a_retraction_is_computed():
    plan = layout(segments([20], 30), seam=Seam(8), min_tokens=6).until(34)
    assert plan.runs == ((0, 8), (20, 34))


@given(
    st.lists(st.integers(1, 120), min_size=1, max_size=20),
    st.floats(0, 20),
    st.sets(st.integers(0, 20)),
)
def test_every_token_is_computed_or_moved_exactly_once(lengths, width, in_place):
    ends = [sum(lengths[: i + 1]) for i in range(len(lengths))]
    plan = layout(
        segments(ends[:-1], ends[-1]),
        seam=Seam(width),
        min_tokens=6,
        in_place=lambda index: index in in_place,
    )
    computed = [p for start, end in plan.runs for p in range(start, end)]
    moved = [p for i in plan.interiors for p in range(i.start, i.end)]
    assert sorted(computed + moved) == list(range(ends[-1]))
    assert computed == sorted(computed)
    assert len(plan.runs) == len(plan.interiors) + 1
    assert plan.runs[-1][1] > plan.runs[-1][0]
