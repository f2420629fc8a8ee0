"""Moving cached keys on a GPU: one program a token and key head. Same results as the reference."""

# A kernel takes pointers, numbers and constants (in capitals); Triton types them.
# ruff: noqa: ANN001, ANN202, FBT001, N803, PLR0917
# mypy: disable-error-code="untyped-decorator,no-untyped-def"

import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _turned_pair(
    first,
    second,
    cos_sin,
    delta,
    pair,
    inside,
    cos_sin_stride,
    HALF: tl.constexpr,
):
    row = cos_sin + tl.abs(delta) * cos_sin_stride
    cos = tl.load(row + pair, mask=inside, other=1.0).to(tl.float32)
    sin = tl.load(row + HALF + pair, mask=inside, other=0.0).to(tl.float32)
    sin = tl.where(delta < 0, -sin, sin)
    wide_first, wide_second = first.to(tl.float32), second.to(tl.float32)
    turned_first = (wide_first * cos - wide_second * sin).to(first.dtype)
    turned_second = (wide_second * cos + wide_first * sin).to(first.dtype)
    stays = delta == 0
    return tl.where(stays, first, turned_first), tl.where(stays, second, turned_second)


@triton.jit
def _move(
    k_cache,
    v_cache,
    src,
    dst,
    delta,
    cos_sin,
    k_row,
    k_head,
    v_row,
    v_head,
    cos_sin_stride,
    K_DIM: tl.constexpr,
    V_DIM: tl.constexpr,
    ROTARY: tl.constexpr,
    NEOX: tl.constexpr,
    PAIR_BLOCK: tl.constexpr,
    K_BLOCK: tl.constexpr,
    V_BLOCK: tl.constexpr,
):
    token, head = tl.program_id(0), tl.program_id(1).to(tl.int64)
    source, target = tl.load(src + token).to(tl.int64), tl.load(dst + token).to(tl.int64)
    shift = tl.load(delta + token).to(tl.int64)
    half: tl.constexpr = ROTARY // 2

    k_from = k_cache + source * k_row + head * k_head
    k_to = k_cache + target * k_row + head * k_head
    pair = tl.arange(0, PAIR_BLOCK)
    inside = pair < half
    if NEOX:
        first_at, second_at = pair, pair + half
    else:
        first_at, second_at = 2 * pair, 2 * pair + 1
    first = tl.load(k_from + first_at, mask=inside)
    second = tl.load(k_from + second_at, mask=inside)
    first, second = _turned_pair(first, second, cos_sin, shift, pair, inside, cos_sin_stride, half)
    tl.store(k_to + first_at, first, mask=inside)
    tl.store(k_to + second_at, second, mask=inside)

    rest = tl.arange(0, K_BLOCK)
    beyond = (rest >= ROTARY) & (rest < K_DIM)
    tl.store(k_to + rest, tl.load(k_from + rest, mask=beyond), mask=beyond)

    column = tl.arange(0, V_BLOCK)
    v_from = v_cache + source * v_row + head * v_head
    v_to = v_cache + target * v_row + head * v_head
    tl.store(v_to + column, tl.load(v_from + column, mask=column < V_DIM), mask=column < V_DIM)


def move(
    k_cache: Tensor,
    v_cache: Tensor,
    src: Tensor,
    dst: Tensor,
    delta: Tensor,
    cos_sin: Tensor,
    rotary_dim: int,
    neox: bool,
) -> None:
    """Copy rows `src` to rows `dst`, keys turned."""
    assert k_cache.stride(2) == v_cache.stride(2) == cos_sin.stride(1) == 1
    n, (n_heads, k_dim), v_dim = src.shape[0], k_cache.shape[1:], v_cache.shape[2]
    if n == 0:
        return
    _move[(n, n_heads)](
        k_cache,
        v_cache,
        src,
        dst,
        delta,
        cos_sin,
        k_cache.stride(0),
        k_cache.stride(1),
        v_cache.stride(0),
        v_cache.stride(1),
        cos_sin.stride(0),
        K_DIM=k_dim,
        V_DIM=v_dim,
        ROTARY=rotary_dim,
        NEOX=neox,
        PAIR_BLOCK=triton.next_power_of_2(rotary_dim // 2),
        K_BLOCK=triton.next_power_of_2(k_dim),
        V_BLOCK=triton.next_power_of_2(v_dim),
        num_warps=1,
    )
