from dataclasses import replace

import pytest
import torch

from hypic_engine.ops.delta_rule import chunked, operators, recurrent
from hypic_engine.ops.walk import walk_pool
from hypic_engine.ops.walk.kernel import walk_pool as kernel
from hypic_engine.ops.walk.reference import walk_pool as reference

from ..ops.cases import LENGTHS, Shape, delta_walks, rule

QWEN = Shape(16, 32, 128, 128)
TINY = Shape(2, 4, 64, 64)
SHAPES = (TINY, QWEN, Shape(1, 1, 16, 16), Shape(2, 2, 64, 96), Shape(1, 3, 24, 40))
DTYPES = (torch.float32, torch.bfloat16)
PRECISIONS = ("tf32x3", "ieee")
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def check(case, walks=walk_pool, **options):
    """The kernel against the reference in float64 on the same rounded inputs."""
    got = case.to("cuda").result(walks, **options)
    for ours, exact in zip(got, case.to(torch.float64).result(reference), strict=True):
        torch.testing.assert_close(ours.cpu().double(), exact, **CLOSE)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_kernel_gives_what_the_reference_gives(shape, dtype, precision):
    case = delta_walks([[8, 0, 3, 70], [2, 5]], dtype=dtype, shape=shape, last_slot=-1)
    check(case, kernel, precision=precision)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n_tokens", LENGTHS)
def test_every_length_of_a_run(n_tokens, dtype):
    check(delta_walks([[n_tokens]], dtype=dtype, shape=TINY))


@pytest.mark.parametrize("runs", [[8] * 50 + [64], [0] * 7, [1, 0, 2, 0], [8] * 500], ids=len)
def test_many_segments_and_empty_runs(runs):
    check(delta_walks([runs], dtype=torch.bfloat16, shape=QWEN))


def test_tokens_may_be_slices_of_a_wider_projection():
    case = delta_walks([[8, 3]], dtype=torch.bfloat16, shape=QWEN).to("cuda")
    wide = [torch.cat([x, x], -1)[..., : x.shape[-1]] for x in case.tokens[3:]]
    mixed = torch.cat([x.flatten(1) for x in case.tokens[:3]], 1)
    parts = mixed.split([x[0].numel() for x in case.tokens[:3]], 1)
    cut = [part.unflatten(1, x.shape[1:]) for part, x in zip(parts, case.tokens, strict=False)]
    sliced = replace(case, tokens=(*cut, *wide))
    for one, other in zip(sliced.result(kernel), case.result(kernel), strict=True):
        assert torch.equal(one, other)


def test_the_same_walks_give_the_same_bits():
    case = delta_walks([[8, 8, 64], [3]], dtype=torch.bfloat16, shape=QWEN).to("cuda")
    for one, other in zip(case.result(walk_pool), case.result(walk_pool), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("n_tokens", LENGTHS)
def test_chunks_and_operators_run_on_the_accelerator_too(n_tokens):
    arguments = rule(n_tokens, TINY, forget=0.2)
    there = tuple(x.cuda() for x in arguments)
    for got, expected in zip(chunked(*there), recurrent(*arguments), strict=True):
        torch.testing.assert_close(got.cpu(), expected, **CLOSE)
    for got, expected in zip(operators(*there[1:5]), operators(*arguments[1:5]), strict=True):
        torch.testing.assert_close(got.cpu(), expected, **CLOSE)
