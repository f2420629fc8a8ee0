import pytest
import torch

from hypic_engine.ops.move_keys import move
from hypic_engine.ops.move_keys.reference import move as reference

from ..ops.cases import rotary_table

DTYPES = (torch.float32, torch.bfloat16)
SHAPES = {"qwen": (2, 256, 256, 64), "tiny": (2, 64, 64, 16), "odd": (3, 40, 24, 12)}


def spoiled_caches(dtype, heads, k_dim, v_dim, slots):
    """Every second row holds values; the others are NaN until something is moved there."""
    generator = torch.Generator().manual_seed(0)
    caches = []
    for dim in (k_dim, v_dim):
        cache = torch.randn(slots, heads, dim, generator=generator).to(dtype)
        cache[1::2] = torch.nan
        caches.append(cache)
    return caches


@pytest.mark.parametrize("neox", [True, False], ids=["halves", "neighbours"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [1, 2, 3, 63, 64, 65, 1000])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_kernel_gives_what_the_reference_gives(shape, n, dtype, neox):
    heads, k_dim, v_dim, rotary_dim = shape
    k_cache, v_cache = spoiled_caches(dtype, heads, k_dim, v_dim, 2 * n + 8)
    k_there, v_there = k_cache.cuda(), v_cache.cuda()
    generator = torch.Generator().manual_seed(n)
    src = 2 * torch.randperm(n, generator=generator)
    dst = 2 * torch.randperm(n, generator=generator) + 1
    delta = torch.randint(-400, 400, (n,), generator=generator)
    delta[::3] = 0
    table = rotary_table(401, rotary_dim)
    reference(k_cache, v_cache, src, dst, delta, table, rotary_dim, neox)
    places = (x.cuda() for x in (src, dst, delta, table))
    move(k_there, v_there, *places, rotary_dim, neox)
    # Products may be fused into sums: the last bit of a rounded result may differ.
    one_unit = {"rtol": 2**-7, "atol": 2**-7} if dtype == torch.bfloat16 else {}
    torch.testing.assert_close(k_there.cpu(), k_cache, equal_nan=True, **one_unit)
    assert torch.equal(v_there.cpu().nan_to_num(), v_cache.nan_to_num())
    stays = dst[delta == 0]
    assert torch.equal(k_there.cpu()[stays], k_cache[stays])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_only_the_rotary_part_of_a_latent_row_turns(dtype):
    rank, rotary_dim = 512, 64
    rows, _ = spoiled_caches(dtype, 1, rank + rotary_dim, 8, 72)
    there = rows.cuda()
    src, dst, delta = 2 * torch.arange(32), 2 * torch.arange(32) + 1, torch.arange(32)
    table = rotary_table(401, rotary_dim)
    reference(rows[..., rank:], rows[..., :rank], src, dst, delta, table, rotary_dim, False)
    places = (x.cuda() for x in (src, dst, delta, table))
    move(there[..., rank:], there[..., :rank], *places, rotary_dim, False)
    one_unit = {"rtol": 2**-7, "atol": 2**-7} if dtype == torch.bfloat16 else {}
    torch.testing.assert_close(there.cpu(), rows, equal_nan=True, **one_unit)
    assert torch.equal(there.cpu()[dst, :, :rank], rows[src, :, :rank])


def test_moving_nothing_launches_nothing():
    k_cache, v_cache = (x.cuda() for x in spoiled_caches(torch.bfloat16, 2, 64, 64, 4))
    none = torch.empty(0, dtype=torch.int64, device="cuda")
    move(k_cache, v_cache, none, none, none, rotary_table(4, 16).cuda(), 16, True)
