from itertools import pairwise

import pytest
import torch

from hypic_engine.ops.delta_rule import operators, recurrent
from hypic_engine.ops.walk import walk, walk_pool
from hypic_engine.ops.walk.kernel import walk_pool as interpreted

from .cases import Shape, delta_walks, pools, rule, tokens_of

CLOSE = {"rtol": 2e-5, "atol": 2e-5}


# Triton's interpreter converts arrays in a way that NumPy is about to forbid.
pytestmark = pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")


def step_by_step(arguments, runs, ends, transitions):
    """The definition: recurrence over the runs, products in between."""
    state = arguments[5].double()
    out = torch.zeros_like(arguments[2], dtype=torch.float64)
    for (start, stop), end, transition in zip(runs, ends, transitions, strict=True):
        part = (x.double() for x in tokens_of(arguments, start, stop))
        out[start:stop], state = recurrent(*part, state)
        if end is not None:
            state = state @ transition.double() + end.double()
    return out, state


@pytest.mark.parametrize("seam", [0, 1, 3, 8])
@pytest.mark.parametrize("lengths", [(11, 20, 70), (64, 65, 63), (200, 3, 9, 12, 130)])
def test_walking_over_operators_is_walking_over_their_tokens(seam, lengths):
    n_tokens = sum(lengths) + 40
    arguments = rule(n_tokens, Shape(), forget=0.1)
    out, state = recurrent(*arguments)
    runs, ends, transitions, start = [], [], [], 0
    for length in lengths:
        width = min(seam, length)
        end, transition = operators(*(x[start + width : start + length] for x in arguments[1:5]))
        runs.append((start, start + width))
        ends.append(end)
        transitions.append(transition)
        start += length
    walked, last = walk(*arguments, [*runs, (start, n_tokens)], [*ends, None], [*transitions, None])
    torch.testing.assert_close(last, state, **CLOSE)
    for first, stop in (*runs, (start, n_tokens)):
        torch.testing.assert_close(walked[first:stop], out[first:stop], **CLOSE)


@pytest.mark.parametrize(
    "lengths", [[1], [2, 0, 5], [0, 0, 0], [63, 64, 65], [8] * 20 + [100], [3, 1, 1000]], ids=str
)
def test_a_walk_is_the_recurrence_with_products_in_between(lengths):
    shape = Shape()
    ends, transitions = pools(shape, len(lengths))
    arguments = rule(sum(lengths), shape)
    offsets = torch.tensor([0, *lengths]).cumsum(0).tolist()
    runs = list(pairwise(offsets))
    for got, expected in zip(
        walk(*arguments, runs, [*ends], [*transitions]),
        step_by_step(arguments, runs, [*ends], [*transitions]),
        strict=True,
    ):
        torch.testing.assert_close(got.double(), expected, **CLOSE)


def test_tokens_of_no_run_do_not_exist():
    arguments = rule(50, Shape())
    spoiled = tuple(x.clone() for x in arguments)
    for x in spoiled[:5]:
        x[20:30] = torch.nan
    out, state = walk(*spoiled, [(0, 20), (30, 50)], [None, None], [None, None])
    without = tuple(torch.cat([x[:20], x[30:]]) for x in arguments[:5])
    expected_out, expected_state = recurrent(*without, arguments[5])
    torch.testing.assert_close(torch.cat([out[:20], out[30:]]), expected_out, **CLOSE)
    torch.testing.assert_close(state, expected_state, **CLOSE)


def by_definition(case):
    """All walks in float64, one after the other."""
    out, states = case.out.double(), case.states.double()
    ends, transitions = case.stored
    for slot, steps in zip(case.slots.tolist(), case.runs, strict=True):
        arguments = (*case.tokens, states[slot])
        runs = [(start, end) for start, end, *_ in steps]
        chosen = [
            [pool[segment] if segment >= 0 else None for _, _, segment, *_ in steps]
            for pool in (ends, transitions)
        ]
        read, states[slot] = step_by_step(arguments, runs, *chosen)
        for start, end in runs:
            out[start:end] = read[start:end]
    return out, states


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("walks", [[[8, 0, 3, 70]], [[8], [0, 5], [1, 1, 40]]], ids=["1", "3"])
def test_walks_take_states_and_operators_by_their_slots(walks, dtype):
    case = delta_walks(walks, dtype=dtype, shape=Shape(), last_slot=-1)
    for got, want in zip(case.result(walk_pool), by_definition(case), strict=True):
        torch.testing.assert_close(got.double(), want, **CLOSE)


def test_tokens_and_states_of_no_walk_are_left_alone():
    case = delta_walks([[8], [3]], dtype=torch.float32, shape=Shape())
    out, states = case.result(walk_pool)
    assert torch.equal(out[8], case.out[8])
    assert torch.equal(states[[0, 3]], case.states[[0, 3]])
    assert not torch.equal(states[1], case.states[1])


@pytest.mark.parametrize("n_segments", [1, 2, 500])
def test_many_segments_in_a_row(n_segments):
    shape = Shape(1, 1, 16, 8)
    case = delta_walks([[2] * n_segments], dtype=torch.float32, shape=shape)
    for got, want in zip(case.result(walk_pool), by_definition(case), strict=True):
        torch.testing.assert_close(got.double(), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [Shape(1, 2, 16, 24), Shape(1, 1, 24, 8)], ids=str)
def test_the_kernel_gives_what_the_reference_gives(shape, dtype):
    case = delta_walks([[2, 0, 5], [1]], dtype=dtype, shape=shape, last_slot=-1)
    for got, expected in zip(case.result(interpreted), case.result(walk_pool), strict=True):
        torch.testing.assert_close(got, expected, **CLOSE)
