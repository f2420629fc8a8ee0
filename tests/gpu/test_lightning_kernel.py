import pytest
import torch

from hypic_engine.ops.lightning import walk_pool
from hypic_engine.ops.lightning.reference import walk_pool as reference

from ..ops.cases import LENGTHS, lightning_walk

RING = (16, 128, 128, 64)
SIZES = (RING, (4, 128, 128, 128), (3, 32, 24, 16), (1, 24, 8, 24), (2, 16, 16, 0))
DTYPES = (torch.float32, torch.bfloat16)
CLOSE = {"rtol": 1e-4, "atol": 1e-3}


def check(arguments):
    """The kernel against the reference in float64 on the same rounded inputs."""
    wide = (x.double() if x.is_floating_point() else x for x in arguments)
    got = walk_pool(*(x.cuda() for x in arguments))
    for ours, expected in zip(got, reference(*wide), strict=True):
        assert ours.dtype == torch.float32
        torch.testing.assert_close(ours.cpu().double(), expected, **CLOSE)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_the_kernel_gives_what_the_reference_gives(sizes, dtype):
    check(lightning_walk([8, 0, 3, 70], dtype=dtype, sizes=sizes, last_slot=-1))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n_tokens", LENGTHS)
def test_every_length_of_a_run(n_tokens, dtype):
    check(lightning_walk([n_tokens], dtype=dtype))


@pytest.mark.parametrize("n_segments", [1, 2, 500])
def test_many_segments_with_seams_between(n_segments):
    check(lightning_walk([8] * n_segments, dtype=torch.bfloat16, sizes=RING))


def test_the_same_walk_gives_the_same_bits_and_changes_no_argument():
    arguments = [x.cuda() for x in lightning_walk([8, 8, 64], dtype=torch.bfloat16, sizes=RING)]
    before = [x.clone() for x in arguments]
    for one, other in zip(walk_pool(*arguments), walk_pool(*arguments), strict=True):
        assert torch.equal(one, other)
    for x, copy in zip(arguments, before, strict=True):
        assert torch.equal(x, copy)
