from functools import partial
from types import SimpleNamespace

import pytest
import torch

from hypic_engine.core.layout import Seam, layout, segments
from hypic_engine.plugin.prompts import Capture, Prompt, Wanted
from hypic_engine.plugin.runner.planning import forward_plan
from hypic_engine.plugin.settings import Mode

from ..support.steps import steps

SEAM = Seam(4)
N_TOKENS = 45


def prompt_of_two_segments(moves, *, scale=1):
    """Segments [0, 10) and [20, 40) come from the cache; [10, 20) and 5 tokens do not."""
    ends = [scale * end for end in (10, 20, 40)]
    cut = segments(ends, scale * N_TOKENS)
    plan = layout(cut, seam=SEAM, min_tokens=6, in_place=lambda i: i == 1)
    prompt = Prompt(plan, (), n_segments=3)
    prompt.entries = tuple(
        SimpleNamespace(operator=operator, slots=torch.arange(first, first + length))
        for operator, first, length in ((7, 100, scale * 10), (9, 200, scale * 20))
    )
    prompt.copies = tuple(
        SimpleNamespace(slots=torch.arange(first, first + interior.length))
        for first, interior in zip((300, 400), plan.interiors, strict=True)
    )
    prompt.moves = moves
    return prompt


def request(n_tokens, n_prefix=0):
    return SimpleNamespace(prefix_indices=[0] * n_prefix, fill_len=n_tokens)


def plan_of(mode=Mode.TRANSITION_ROPE_RECOMPUTE, *, moves=(True, True), scale=1):
    requests = [request(scale * 8), request(scale * N_TOKENS)]
    captures = [Capture(Wanted(None, "", b"", ""), 3, 5, ""), None]
    prompts = [None, prompt_of_two_segments(moves, scale=scale)]
    return forward_plan(requests, prompts, captures, mode=mode, device="cpu")


def test_computed_tokens_stand_at_their_true_positions():
    expected = [*range(8), *range(4), *range(10, 24), *range(40, 45)]
    assert plan_of().positions.tolist() == expected


def test_each_run_is_a_sequence_that_sees_all_before_it():
    plan = plan_of()
    assert plan.virtual_rows.tolist() == [0, 1, 1, 1]
    assert (plan.starts_cpu, plan.ends_cpu) == ((0, 0, 10, 40), (8, 4, 24, 45))
    assert plan.tails.tolist() == [0, 0, 7, 9]
    assert plan.last.tolist() == [0, 3]


def test_a_walk_goes_through_runs_and_segments_in_turn():
    plan = plan_of()
    assert plan.walk_rows.tolist() == [1]
    assert list(plan.walks) == [[(8, 12, 7, 6, 0), (12, 26, 9, 16, 20)]]
    assert plan.final_tokens.tolist() == [*range(8), *range(26, 31)]
    assert plan.final_offsets.tolist() == [0, 8, 13]


@pytest.mark.parametrize(
    ("mode", "steps"),
    [
        (Mode.ADDITION, [(6, 0), (16, 0)]),
        (Mode.TRANSITION, [(6, 0), (16, 0)]),
        (Mode.TRANSITION_ROPE, [(6, 0), (16, 20)]),
    ],
)
def test_what_a_mode_leaves_out_is_zero(mode, steps):
    (walk,) = plan_of(mode).walks
    lengths = [length if mode.composes else 0 for length, _ in steps]
    assert [step[3] for step in walk] == lengths
    assert [step[4] for step in walk] == [delta for _, delta in steps]


def test_keys_of_interiors_move_to_slots_of_the_prompts_own():
    moves = plan_of().moves
    assert moves.source.tolist() == [*range(104, 110), *range(204, 220)]
    assert moves.target.tolist() == [*range(300, 306), *range(400, 416)]
    assert moves.delta.tolist() == [0] * 6 + [20] * 16


def test_a_copy_that_is_there_is_not_made_again():
    assert plan_of(moves=(True, False)).moves.target.tolist() == [*range(300, 306)]
    assert plan_of(moves=(False, False)).moves is None


def test_operators_leave_out_the_seam_of_a_row_that_is_kept():
    kept = plan_of().kept
    assert kept.tokens.tolist() == [3, 4, 5, 6, 7]
    assert kept.offsets.tolist() == [0, 5]
    assert (kept.operators.tolist(), kept.virtual_rows.tolist()) == ([5], [0])


def test_a_batch_of_plain_prompts_has_no_walks():
    requests, mode = [request(3), request(7, n_prefix=5)], Mode.TRANSITION_ROPE_RECOMPUTE
    plan = forward_plan(requests, [None, None], [None, None], mode=mode, device="cpu")
    assert plan.walks is plan.kept is plan.moves is plan.final_tokens is None
    assert plan.positions.tolist() == [0, 1, 2, 5, 6]
    assert plan.continued.tolist() == [-1, 1]


def test_the_host_does_as_much_for_long_documents_as_for_short_ones():
    plan_of()  # imports and caches of the first call
    assert steps(partial(plan_of, scale=1_000)) == steps(plan_of)
