import pytest
import torch

from hypic_engine.ops.lightning import chunked, end_states, recurrent, rotated, walk_pool
from hypic_engine.ops.lightning.fill_kernel import end_states as interpreted_fill
from hypic_engine.ops.lightning.kernel import walk_pool as interpreted

from .cases import LENGTHS, lightning_walks, packed_segments, rotary_table

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
    _, expected = exact((q, k, v, slope, state))
    decay = torch.exp(-slope * n_tokens)[:, None, None]
    after = state * decay + end_states(k, v, slope, torch.tensor([0, n_tokens]))[0]
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
    whole = torch.tensor([0, 40])
    (here,) = end_states(turned(k, torch.arange(40), table), v, slope, whole)
    (there,) = end_states(turned(k, torch.arange(40) + delta, table), v, slope, whole)
    moved = rotated(here, torch.tensor([delta]), table)
    torch.testing.assert_close(moved, there, rtol=1e-4, atol=5e-4)
    assert delta or torch.equal(moved, here)


def by_definition(case):
    """All walks in float64, token by token."""
    out, states = case.out.double(), case.states.double()
    *tokens, slope = (x.double() for x in case.tokens)
    pool, table = case.stored
    for slot, steps in zip(case.slots.tolist(), case.runs, strict=True):
        h = states[slot]
        for start, end, segment, length, delta in steps:
            out[start:end], h = recurrent(*(x[start:end] for x in tokens), slope, h)
            if segment >= 0:
                added = rotated(pool[segment].double(), torch.tensor([delta]), table)
                h = h * torch.exp(-slope * length)[:, None, None] + added
        states[slot] = h
    return out, states


WALKS = {
    "one": [[8]],
    "empty": [[0]],
    "four runs": [[8, 0, 3, 70]],
    "three walks": [[8], [0, 5], [1, 1, 40]],
    "500 segments": [[1] * 500],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("walks", WALKS.values(), ids=WALKS)
def test_walks_alternate_tokens_and_stored_states(walks, dtype):
    case = lightning_walks(walks, dtype=dtype)
    for got, expected in zip(case.result(walk_pool), by_definition(case), strict=True):
        torch.testing.assert_close(got.double(), expected, rtol=1e-4, atol=1e-4)


def test_tokens_and_states_of_no_walk_are_left_alone():
    case = lightning_walks([[8], [3]], dtype=torch.float32)
    out, states = case.result(walk_pool)
    assert torch.equal(out[8], case.out[8])
    assert torch.equal(states[[0, 3]], case.states[[0, 3]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("sizes", [(2, 16, 24, 8), (1, 24, 8, 24), (1, 16, 8, 0)], ids=str)
def test_the_kernel_gives_what_the_reference_gives(sizes, dtype):
    case = lightning_walks([[2, 0, 5], [1]], dtype=dtype, sizes=sizes, last_slot=-1)
    for got, expected in zip(case.result(interpreted), case.result(walk_pool), strict=True):
        torch.testing.assert_close(got, expected, **CLOSE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("lengths", [[1], [2, 3], [63, 64, 65], [1] * 40], ids=str)
@pytest.mark.parametrize("sizes", [(2, 16, 24), (1, 24, 40)], ids=str)
def test_one_launch_makes_the_end_states_of_all_segments(sizes, lengths, dtype):
    fill = packed_segments(lengths, dtype=dtype, sizes=sizes)
    expected = end_states(*fill)
    assert expected.isfinite().all()
    torch.testing.assert_close(interpreted_fill(*fill), expected, rtol=1e-4, atol=1e-4)
