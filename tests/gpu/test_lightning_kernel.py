import pytest
import torch

from hypic_engine.ops.lightning import end_states, walk_pool
from hypic_engine.ops.lightning.reference import end_states as fill_reference
from hypic_engine.ops.lightning.reference import walk_pool as reference

from ..ops.cases import LENGTHS, lightning_walks, packed_segments

RING = (16, 128, 128, 64)
SIZES = (RING, (4, 128, 128, 128), (3, 32, 24, 16), (1, 24, 8, 24), (2, 16, 16, 0))
DTYPES = (torch.float32, torch.bfloat16)
CLOSE = {"rtol": 1e-4, "atol": 1e-3}


def check(case):
    """The kernel against the reference in float64 on the same rounded inputs."""
    got, expected = case.to("cuda").result(walk_pool), case.to(torch.float64).result(reference)
    for ours, exact in zip(got, expected, strict=True):
        torch.testing.assert_close(ours.cpu().double(), exact, **CLOSE)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_the_kernel_gives_what_the_reference_gives(sizes, dtype):
    check(lightning_walks([[8, 0, 3, 70], [2, 5]], dtype=dtype, sizes=sizes, last_slot=-1))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n_tokens", LENGTHS)
def test_every_length_of_a_run(n_tokens, dtype):
    check(lightning_walks([[n_tokens]], dtype=dtype))


@pytest.mark.parametrize("n_segments", [1, 2, 500])
def test_many_segments_with_seams_between(n_segments):
    check(lightning_walks([[8] * n_segments], dtype=torch.bfloat16, sizes=RING))


def test_the_same_walks_give_the_same_bits():
    case = lightning_walks([[8, 8, 64], [3]], dtype=torch.bfloat16, sizes=RING).to("cuda")
    for one, other in zip(case.result(walk_pool), case.result(walk_pool), strict=True):
        assert torch.equal(one, other)


SEGMENTS = (*([n] for n in LENGTHS), [100, 3, 64], [65] * 500)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("lengths", SEGMENTS, ids=lambda lengths: f"{len(lengths)}x{lengths[0]}")
def test_one_launch_makes_the_end_states_of_all_segments(lengths, dtype):
    k, v, slope, offsets = fill = packed_segments(lengths, dtype=dtype, sizes=RING[:3])
    exact = fill_reference(k.double(), v.double(), slope.double(), offsets)
    got = end_states(*(x.cuda() for x in fill))
    torch.testing.assert_close(got.cpu().double(), exact, **CLOSE)
