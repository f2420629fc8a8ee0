"""The state-and-transition pass of a fill, as SGLang's chunk kernel does it in bfloat16."""

from itertools import pairwise

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


@pytest.mark.parametrize("lengths", [*([n] for n in LENGTHS), [100, 3, 64]], ids=str)
@pytest.mark.parametrize("shape", [QWEN, TINY], ids=str)
def test_one_pass_gives_states_and_transitions_of_all_segments(shape, lengths):
    _, *arguments, _ = rule(sum(lengths), shape, forget=0.05)
    k, v = (x.bfloat16() for x in arguments[:2])
    tokens = (k, v, *arguments[2:])
    offsets = torch.tensor([0, *lengths]).cumsum(0).int()
    there = (x.cuda() for x in (*tokens, offsets))
    states, transitions = operators_by_stock_kernel(*there)
    for i, (start, end) in enumerate(pairwise(offsets.tolist())):
        exact = operators(*(x[start:end].double() for x in tokens))
        for got, expected in zip((states[i], transitions[i]), exact, strict=True):
            assert got.dtype == torch.float32
            assert relative_error(got, expected) < TOLERANCE
