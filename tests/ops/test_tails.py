import pytest
import torch

from hypic_engine.ops.tails import gather
from hypic_engine.ops.tails.kernel import gather as interpreted

from .cases import LENGTHS, histories

# Triton's interpreter converts arrays in a way that NumPy is about to forbid.
pytestmark = pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")

DTYPES = (torch.float32, torch.bfloat16)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n_runs", [1, 2, 500])
def test_a_run_sees_its_segments_tail_or_its_prefix_or_zeros(n_runs, dtype):
    stored, segments, own, slots, rows = histories(n_runs, 7, dtype=dtype)
    tails = gather(stored, segments, own, slots, rows)
    assert tails.dtype == dtype
    for tail, segment, row in zip(tails, segments.tolist(), rows.tolist(), strict=True):
        prefix = own[slots[row]] if row >= 0 else torch.zeros_like(tail)
        assert torch.equal(tail, stored[segment] if segment else prefix)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n_channels", LENGTHS)
def test_the_kernel_copies_the_same_bits(n_channels, dtype):
    case = histories(5, n_channels, dtype=dtype)
    assert torch.equal(interpreted(*case), gather(*case))
