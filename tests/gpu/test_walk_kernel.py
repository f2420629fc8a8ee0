import pytest
import torch

from hypic_engine.ops.delta_rule import chunked, operators, recurrent
from hypic_engine.ops.walk import walk_pool
from hypic_engine.ops.walk.kernel import walk_pool as kernel
from hypic_engine.ops.walk.reference import walk_pool as reference

from ..ops.cases import LENGTHS, Shape, poisoned, pools, rule

QWEN = Shape(16, 32, 128, 128)
TINY = Shape(2, 4, 64, 64)
SHAPES = (TINY, QWEN, Shape(1, 1, 16, 16), Shape(2, 2, 64, 96), Shape(1, 3, 24, 40))
DTYPES = (torch.float32, torch.bfloat16)
PRECISIONS = ("tf32x3", "ieee")
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def case(shape, lengths, slots, dtype):
    """Tokens cut from one wide projection, everything around them NaN."""
    q, k, v, g, beta, state = rule(sum(lengths), shape, forget=0.2)
    flat = [x.flatten(1) for x in (q, k, v)]
    mixed = poisoned(torch.cat(flat, 1).to(dtype)).cuda()
    sizes = [x.shape[1] for x in flat]
    tokens = [
        part.unflatten(1, x.shape[1:])
        for part, x in zip(mixed.split(sizes, 1), (q, k, v), strict=True)
    ]
    gates = (poisoned(x).cuda() for x in (g, beta))
    offsets = torch.tensor([0, *lengths], device="cuda").cumsum(0).int()
    index = torch.tensor(slots, dtype=torch.int32, device="cuda")
    held = (poisoned(pool.to(dtype)).cuda() for pool in pools(shape, 6))
    return (*tokens, *gates, state.cuda(), offsets, index, *held)


def exact(arguments):
    """The reference in float64 on the same rounded inputs."""
    wide = [x.double() if x.is_floating_point() else x for x in arguments]
    return reference(*(x.cpu() for x in wide))


def check(got, arguments):
    for ours, expected in zip(got, exact(arguments), strict=True):
        assert ours.dtype == torch.float32
        torch.testing.assert_close(ours.cpu().double(), expected, **CLOSE)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_kernel_gives_what_the_reference_gives(shape, dtype, precision):
    arguments = case(shape, [8, 0, 3, 70], [4, 0, -1, 5], dtype)
    check(kernel(*arguments, precision=precision), arguments)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n_tokens", LENGTHS)
def test_every_length_of_a_run(n_tokens, dtype):
    arguments = case(TINY, [n_tokens], [2], dtype)
    check(walk_pool(*arguments), arguments)


@pytest.mark.parametrize("lengths", [[8] * 50 + [64], [0] * 7, [1, 0, 2, 0]], ids=str)
def test_many_segments_and_empty_runs(lengths):
    arguments = case(QWEN, lengths, [i % 6 for i in range(len(lengths))], torch.bfloat16)
    check(walk_pool(*arguments), arguments)


def test_the_same_walk_gives_the_same_bits_and_changes_no_argument():
    arguments = case(QWEN, [8, 8, 64], [1, 2, -1], torch.bfloat16)
    before = [x.clone() for x in arguments]
    first, second = walk_pool(*arguments), walk_pool(*arguments)
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one, other)
    for x, copy in zip(arguments, before, strict=True):
        assert torch.equal(x, copy)


@pytest.mark.parametrize("n_tokens", LENGTHS)
def test_chunks_and_operators_run_on_the_accelerator_too(n_tokens):
    arguments = rule(n_tokens, TINY, forget=0.2)
    there = tuple(x.cuda() for x in arguments)
    for got, expected in zip(chunked(*there), recurrent(*arguments), strict=True):
        torch.testing.assert_close(got.cpu(), expected, **CLOSE)
    seam = min(8, n_tokens // 2)
    for got, expected in zip(
        operators(*there[1:5], seam), operators(*arguments[1:5], seam), strict=True
    ):
        torch.testing.assert_close(got.cpu(), expected, **CLOSE)
