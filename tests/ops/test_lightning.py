from itertools import pairwise

import pytest
import torch

from hypic_engine.ops.lightning import chunked, end_state, recurrent, rotated, walk_pool
from hypic_engine.ops.lightning.kernel import walk_pool as interpreted

from .cases import LENGTHS, lightning_walk, poisoned, rotary_table

CLOSE = {"rtol": 2e-5, "atol": 2e-5}
SLOPE = torch.tensor([0.25, 0.004, 2.0])

# Triton's interpreter converts arrays in a way that NumPy is about to forbid.
pytestmark = pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")


def tokens(n_tokens, *, heads=3, dk=32, dv=24, seed=0):
    generator = torch.Generator().manual_seed(seed)
    sizes = ((n_tokens, heads, dk), (n_tokens, heads, dk), (n_tokens, heads, dv), (heads, dk, dv))
    q, k, v, state = (torch.randn(*size, generator=generator) for size in sizes)
    return q, k, v, SLOPE, state


def exact(arguments):
    return recurrent(*(x.double() for x in arguments))


def test_one_token_writes_what_the_formula_says():
    q, k, v, slope, state = tokens(1)
    out, after = recurrent(q, k, v, slope, state)
    expected = torch.exp(-slope[0]) * state[0] + torch.outer(k[0, 0], v[0, 0])
    torch.testing.assert_close(after[0], expected)
    torch.testing.assert_close(out[0, 0], q[0, 0] @ expected / 32**0.5)


@pytest.mark.parametrize("n_tokens", LENGTHS)
def test_chunks_give_what_the_recurrence_gives_in_float64(n_tokens):
    arguments = tokens(n_tokens)
    for got, expected in zip(chunked(*arguments), exact(arguments), strict=True):
        assert got.dtype == torch.float32
        torch.testing.assert_close(got.double(), expected, rtol=1e-4, atol=1e-4)


def test_no_tokens_change_nothing():
    arguments = tokens(0)
    out, state = chunked(*arguments)
    assert out.shape == (0, 3, 24)
    assert torch.equal(state, arguments[4])


@pytest.mark.parametrize("n_tokens", LENGTHS)
def test_an_end_state_acts_on_any_state_as_its_tokens_do(n_tokens):
    q, k, v, slope, state = tokens(n_tokens)
    seam = min(8, n_tokens // 2)
    _, expected = exact((q[seam:], k[seam:], v[seam:], slope, state))
    decay = torch.exp(-slope * (n_tokens - seam))[:, None, None]
    after = state * decay + end_state(k, v, slope, seam)
    torch.testing.assert_close(after.double(), expected, **CLOSE)


def turned(x, positions, table):
    """Keys [T, H, DK] at their positions, each pair of halves a complex number that turns."""
    rotary_dim = table.shape[1]
    angle = torch.complex(*table[positions].chunk(2, -1))[:, None]
    halves = x[..., :rotary_dim].unflatten(-1, (2, -1)).mT.contiguous()
    moved = torch.view_as_real(torch.view_as_complex(halves) * angle).mT.flatten(-2)
    return torch.cat([moved, x[..., rotary_dim:]], -1)


@pytest.mark.parametrize("rotary_dim", [16, 32], ids=["part", "all"])
@pytest.mark.parametrize("delta", [0, 1, 17, 900])
def test_a_rotated_state_is_the_state_of_tokens_that_stand_there(delta, rotary_dim):
    _, k, v, slope, _ = tokens(40)
    table = rotary_table(1000, rotary_dim)
    here = end_state(turned(k, torch.arange(40), table), v, slope, 8)
    there = end_state(turned(k, torch.arange(40) + delta, table), v, slope, 8)
    moved = rotated(here, torch.tensor([delta]), table)
    torch.testing.assert_close(moved, there, rtol=1e-4, atol=1e-4)
    assert delta or torch.equal(moved, here)


def step_by_step(q, k, v, slope, state, *runs):
    """The walk in float64, from the definition."""
    offsets, slots, lengths, deltas, pool, table = runs
    h, outs = state.double(), []
    for i, (start, end) in enumerate(pairwise(offsets.tolist())):
        out, h = recurrent(*(x[start:end].double() for x in (q, k, v)), slope.double(), h)
        outs.append(out)
        if slots[i] >= 0:
            added = rotated(pool[slots[i]].double(), deltas[i : i + 1], table)
            h = h * torch.exp(-slope.double() * lengths[i])[:, None, None] + added
    return torch.cat(outs), h


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "runs", [[8], [0], [8, 0, 3, 70], [1] * 2, [1] * 500], ids=["1", "empty", "4", "2", "500"]
)
def test_a_walk_alternates_tokens_and_stored_states(runs, dtype):
    arguments = lightning_walk(runs, dtype=dtype)
    for got, expected in zip(walk_pool(*arguments), step_by_step(*arguments), strict=True):
        assert got.dtype == torch.float32
        torch.testing.assert_close(got.double(), expected, rtol=1e-4, atol=1e-4)


def test_what_lies_around_the_tokens_is_never_read():
    q, k, v, *rest = lightning_walk([8, 3], dtype=torch.float32)
    spoiled = (poisoned(q), poisoned(k), poisoned(v), *rest)
    for got, expected in zip(walk_pool(*spoiled), walk_pool(q, k, v, *rest), strict=True):
        assert torch.equal(got, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("sizes", [(2, 16, 24, 8), (1, 24, 8, 24)], ids=str)
def test_the_kernel_gives_what_the_reference_gives(sizes, dtype):
    arguments = lightning_walk([2, 0, 5], dtype=dtype, sizes=sizes, last_slot=-1)
    for got, expected in zip(interpreted(*arguments), walk_pool(*arguments), strict=True):
        torch.testing.assert_close(got, expected, **CLOSE)
