"""The state-and-transition pass of a fill, as SGLang's chunk kernel does it in bfloat16."""

import pytest
import torch

from hypic_engine.ops.delta_rule import operators
from hypic_engine.plugin.runner.gdn import operators_by_stock_kernel

from ..ops.cases import LENGTHS, Shape, rule

QWEN = Shape(16, 32, 128, 128)
TINY = Shape(2, 4, 64, 64)
# The kernel rounds states to bfloat16 once a chunk; so much does one rounding cost.
TOLERANCE = 4 * 2**-8


def relative_error(got, expected):
    return float((got.cpu().double() - expected).norm() / expected.norm().clamp(min=1e-6))


@pytest.mark.parametrize("n_tokens", LENGTHS)
@pytest.mark.parametrize("shape", [QWEN, TINY], ids=str)
def test_one_pass_gives_state_and_transition(shape, n_tokens):
    _, *arguments, _ = rule(n_tokens, shape, forget=0.05)
    k, v = (x.bfloat16() for x in arguments[:2])
    seam = min(8, n_tokens // 2)
    there = (x.cuda() for x in (k, v, *arguments[2:]))
    exact = operators(*(x.double() for x in (k, v, *arguments[2:])), seam)
    for got, expected in zip(operators_by_stock_kernel(*there, seam), exact, strict=True):
        assert got.dtype == torch.float32
        assert relative_error(got, expected) < TOLERANCE
