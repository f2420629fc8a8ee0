import pytest
import torch

from hypic_engine.ops.delta_rule import operators

from ..support.oracle import full, generate, plan
from ..support.oracle_qwen import operator
from .cases import Shape, rule

MODES = ("addition", "transition", "transition_rope", "transition_rope_recompute")
HEAD, TOWER, MOUNTAIN, QUESTION = (
    list(text)
    for text in (
        b"You are a helpful assistant.",
        b"The Eiffel Tower is in Paris, France.",
        b"Mount Fuji is the tallest mountain in Japan.",
        b"Question: In which country is the Eiffel Tower?",
    )
)
PIECES = [HEAD, TOWER, MOUNTAIN, QUESTION]
IDS = [*HEAD, *TOWER, *MOUNTAIN, *QUESTION]


@pytest.fixture(scope="module")
def plain(each_rule):
    return full(each_rule, IDS, 8)


@pytest.mark.parametrize("mode", MODES)
def test_recomputing_every_segment_is_the_plain_prompt(each_rule, plain, mode):
    assert generate(each_rule, PIECES, mode=mode, recompute="all", n_tokens=8) == plain


def test_recomputing_every_segment_by_its_index_is_the_plain_prompt(each_rule, plain):
    assert generate(each_rule, PIECES, recompute=frozenset({0, 1, 2}), n_tokens=8) == plain


def test_segments_too_short_to_cache_are_the_plain_prompt(each_rule, plain):
    assert generate(each_rule, PIECES, min_tokens=100, n_tokens=8) == plain


@pytest.mark.parametrize("mode", MODES)
def test_a_cached_head_is_exact_in_every_mode(each_rule, mode):
    expected = full(each_rule, HEAD + QUESTION, 8)
    assert generate(each_rule, [HEAD, QUESTION], mode=mode, n_tokens=8) == expected


def test_every_mode_answers_differently(each_rule, plain):
    answers = {tuple(generate(each_rule, PIECES, mode=mode, n_tokens=8)) for mode in MODES}
    assert len(answers | {tuple(plain)}) == 5


def test_the_order_of_documents_matters(each_rule):
    swapped = [HEAD, MOUNTAIN, TOWER, QUESTION]
    assert generate(each_rule, PIECES, n_tokens=8) != generate(each_rule, swapped, n_tokens=8)


@pytest.mark.parametrize("mode", MODES)
def test_an_answer_goes_on_where_it_was_cut(each_rule, mode):
    answer = generate(each_rule, PIECES, mode=mode, n_tokens=8)
    longer = [*PIECES[:-1], QUESTION + answer[:5]]
    assert generate(each_rule, longer, mode=mode, n_tokens=3) == answer[5:]


def test_empty_and_one_token_segments_are_computed_in_place(each_rule, plain):
    pieces = [HEAD, [], TOWER, MOUNTAIN[:1], MOUNTAIN[1:], QUESTION]
    recomputed = frozenset({0, 2, 4})
    assert generate(each_rule, pieces, recompute=recomputed, n_tokens=8) == plain


@pytest.mark.parametrize(
    ("length", "seam", "computed"),
    [
        (37, 8, 8),
        (37, 0, 0),
        (37, 0.25, 9),
        (37, 1, 18),
        (37, 100, 18),
        (12, 8, 6),
        (6, 8, 3),
        (5, 8, 5),
        (5, 0, 5),
    ],
)
def test_a_segments_seam_is_at_most_half_of_it(length, seam, computed):
    pieces = [list(range(length)), [1]]
    first, query = plan(
        pieces, mode="transition_rope_recompute", seam=seam, min_tokens=6, recompute=frozenset()
    )
    assert first.computed == computed
    assert (query.start, query.computed) == (length, 1)


@pytest.mark.parametrize(("length", "cached"), [(2, False), (3, True)])
def test_a_segment_needs_three_tokens_for_the_convolution(length, cached):
    pieces = [list(range(length)), [1]]
    first, _ = plan(pieces, mode="transition_rope", seam=8, min_tokens=1)
    assert first.is_cached == cached


@pytest.mark.parametrize("mode", MODES[:3])
def test_modes_without_recompute_have_no_seam(mode):
    first, _ = plan([HEAD, QUESTION], mode=mode, seam=8, min_tokens=6)
    assert first.computed == 0


def test_the_engine_makes_the_operators_that_the_oracle_makes():
    _, k, v, g, beta, _ = rule(40, Shape(2, 2, 16, 24))
    unit = k * torch.rsqrt((k * k).sum(-1, keepdim=True) + 1e-6)
    expected = operator(unit, v, g, beta)
    for got, want in zip(operators(k, v, g, beta), expected, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
