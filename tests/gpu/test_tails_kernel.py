import pytest
import torch

from hypic_engine.ops.tails import gather
from hypic_engine.ops.tails.reference import gather as reference

from ..ops.cases import LENGTHS, histories

QWEN_CHANNELS = 8192
DTYPES = (torch.float32, torch.bfloat16)


def check(case):
    got = gather(*(x.cuda() for x in case))
    assert torch.equal(got.cpu(), reference(*case))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n_channels", LENGTHS)
def test_the_kernel_copies_the_bits_that_the_reference_copies(n_channels, dtype):
    check(histories(5, n_channels, dtype=dtype))


@pytest.mark.parametrize("n_runs", [1, 2, 500])
def test_many_runs_of_a_public_models_width(n_runs):
    check(histories(n_runs, QWEN_CHANNELS, dtype=torch.bfloat16))
