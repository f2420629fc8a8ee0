import pytest
import torch

from hypic_engine.ops.move_keys import move
from hypic_engine.ops.move_keys.kernel import move as interpreted

from .cases import rotary_table

DTYPES = (torch.float32, torch.bfloat16)


# Triton's interpreter converts arrays in a way that NumPy is about to forbid.
pytestmark = pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")


def caches(dtype, *, slots=40, heads=2, dim=24, v_dim=20):
    generator = torch.Generator().manual_seed(0)
    keys = torch.randn(slots, heads, dim, generator=generator).to(dtype)
    values = torch.randn(slots, heads, v_dim, generator=generator).to(dtype)
    return keys, values


def rows(*numbers):
    return torch.tensor(numbers, dtype=torch.int64)


def bits(x):
    return x.view(torch.int32 if x.dtype == torch.float32 else torch.int16)


def turned_at(raw, positions, *, theta, neox):
    """Keys [n, heads, rotary_dim] at their positions: each pair is a complex number that turns."""
    n_pairs = raw.shape[-1] // 2
    inverse = theta ** -(torch.arange(n_pairs) / n_pairs)
    turn = torch.polar(torch.ones(len(positions), n_pairs), positions[:, None] * inverse)[:, None]
    halves = raw.unflatten(-1, (2, n_pairs)).mT if neox else raw.unflatten(-1, (n_pairs, 2))
    turned = torch.view_as_real(torch.view_as_complex(halves.contiguous()) * turn)
    return (turned.mT if neox else turned).flatten(-2)


@pytest.mark.parametrize("neox", [True, False], ids=["halves", "neighbours"])
@pytest.mark.parametrize("delta", [0, 1, 17, 900, -1, -17, -100])
def test_a_moved_key_is_the_key_computed_at_the_new_position(neox, delta):
    raw = torch.randn(3, 2, 16, generator=torch.Generator().manual_seed(0))
    positions = torch.tensor([100, 101, 150])
    k_cache, v_cache = caches(torch.float32)
    k_cache[:3, :, :16] = turned_at(raw, positions, theta=1e4, neox=neox)
    shift = rows(delta, delta, delta)
    table = rotary_table(1000, 16, theta=1e4)
    move(k_cache, v_cache, rows(0, 1, 2), rows(5, 6, 7), shift, table, 16, neox)
    expected = turned_at(raw, positions + delta, theta=1e4, neox=neox)
    torch.testing.assert_close(k_cache[5:8, :, :16], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_key_that_stays_at_its_position_keeps_its_bits(dtype):
    k_cache, v_cache = caches(dtype)
    k_cache[1, 0, :4] = torch.tensor([-0.0, torch.nan, torch.inf, 1e-40])
    before = k_cache.clone()
    table = rotary_table(50, 16)
    move(k_cache, v_cache, rows(0, 1), rows(10, 11), rows(0, 0), table, 16, True)
    assert torch.equal(bits(k_cache[10:12]), bits(before[:2]))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_values_are_copied_and_everything_else_is_left_alone(dtype):
    k_cache, v_cache = caches(dtype)
    k_before, v_before = k_cache.clone(), v_cache.clone()
    table = rotary_table(50, 16)
    move(k_cache, v_cache, rows(3, 1), rows(20, 25), rows(7, -7), table, 16, False)
    assert torch.equal(v_cache[20], v_before[3])
    assert torch.equal(v_cache[25], v_before[1])
    assert torch.equal(k_cache[20, :, 16:], k_before[3, :, 16:])
    untouched = [slot for slot in range(40) if slot not in {20, 25}]
    assert torch.equal(k_cache[untouched], k_before[untouched])
    assert torch.equal(v_cache[untouched], v_before[untouched])


def test_a_key_turns_in_place():
    k_cache, v_cache = caches(torch.float32)
    elsewhere = k_cache.clone()
    table = rotary_table(50, 16)
    move(k_cache, v_cache, rows(3), rows(3), rows(5), table, 16, True)
    move(elsewhere, v_cache, rows(3), rows(9), rows(5), table, 16, True)
    assert torch.equal(k_cache[3], elsewhere[9])


@pytest.mark.parametrize("moved", [move, interpreted], ids=["reference", "kernel"])
def test_only_the_rotary_part_of_a_latent_row_turns(moved):
    """One row holds both: what turns are its last dimensions, and they are not copied twice."""
    latents, _ = caches(torch.float32, heads=1, dim=40)
    keys, values = latents[..., 24:], latents[..., :24]
    before, raw = latents.clone(), torch.randn(2, 1, 16)
    keys[:2] = turned_at(raw, torch.tensor([3, 4]), theta=1e4, neox=False)
    shift, table = rows(30, 30), rotary_table(50, 16, theta=1e4)
    moved(keys, values, rows(0, 1), rows(7, 9), shift, table, 16, False)
    expected = turned_at(raw, torch.tensor([33, 34]), theta=1e4, neox=False)
    torch.testing.assert_close(keys[[7, 9]], expected, rtol=1e-4, atol=1e-4)
    assert torch.equal(values[[7, 9]], before[[0, 1], :, :24])


def test_moving_nothing_changes_nothing():
    k_cache, v_cache = caches(torch.float32)
    before = k_cache.clone()
    move(k_cache, v_cache, rows(), rows(), rows(), rotary_table(4, 16), 16, True)
    assert torch.equal(k_cache, before)


@pytest.mark.parametrize("neox", [True, False], ids=["halves", "neighbours"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_kernel_gives_what_the_reference_gives(dtype, neox):
    k_cache, v_cache = caches(dtype)
    k_kernel, v_kernel = k_cache.clone(), v_cache.clone()
    places = (rows(0, 1, 2, 30), rows(10, 11, 12, 30), rows(0, 5, -7, 49))
    move(k_cache, v_cache, *places, rotary_table(50, 16), 16, neox)
    interpreted(k_kernel, v_kernel, *places, rotary_table(50, 16), 16, neox)
    # Triton's interpreter cuts where the hardware rounds: one unit in the last place of bfloat16.
    one_unit = {"rtol": 2**-7, "atol": 0} if dtype == torch.bfloat16 else {"rtol": 0, "atol": 1e-6}
    torch.testing.assert_close(k_kernel, k_cache, **one_unit)
    assert torch.equal(bits(k_kernel[10]), bits(k_cache[10]))
    assert torch.equal(v_kernel, v_cache)
