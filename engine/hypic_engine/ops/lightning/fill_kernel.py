"""End states of Lightning segments on a GPU: one program a segment, head and block of columns.

A token's share is known from how far it lies before its segment's end, so that blocks of tokens are
summed in one pass. Same results as the reference; never waits for the host.
"""

# A kernel takes pointers, numbers and constants (in capitals); Triton types them.
# ruff: noqa: ANN001, ANN202, N803, PLR0917
# mypy: disable-error-code="untyped-decorator,no-untyped-def"

import torch
import triton
import triton.language as tl
from torch import Tensor

COLUMNS = 32
"""State columns of a program."""
TOKENS = 32
"""Tokens of one product."""


@triton.jit
def _end_states(
    k,
    v,
    slopes,
    offsets,
    out,
    k_token,
    v_token,
    DK: tl.constexpr,
    DV: tl.constexpr,
    K_BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
    TOKENS: tl.constexpr,
):
    head = tl.program_id(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    segment = tl.program_id(2).to(tl.int64)
    key = tl.arange(0, K_BLOCK)
    is_key, is_column = key < DK, column < DV
    slope = tl.load(slopes + head)
    start, end = tl.load(offsets + segment), tl.load(offsets + segment + 1)

    h = tl.zeros((K_BLOCK, COLUMNS), tl.float32)
    for first in range(start, end, TOKENS):
        token = first + tl.arange(0, TOKENS)
        inside = token < end
        share = tl.where(inside, tl.exp(-slope * (end - 1 - token).to(tl.float32)), 0.0)
        at = token.to(tl.int64)
        k_at = k + at[None, :] * k_token + head * DK + key[:, None]
        v_at = v + at[:, None] * v_token + head * DV + column[None, :]
        keys = tl.load(k_at, mask=is_key[:, None] & inside[None, :], other=0.0).to(tl.float32)
        values = tl.load(v_at, mask=inside[:, None] & is_column[None, :], other=0.0).to(tl.float32)
        h += tl.dot(keys * share[None, :], values, input_precision="tf32x3")
    to = out + (segment * tl.num_programs(0) + head) * DK * DV
    in_tile = is_key[:, None] & is_column[None, :]
    tl.store(to + key[:, None] * DV + column[None, :], h, mask=in_tile)


def end_states(k: Tensor, v: Tensor, slope: Tensor, offsets: Tensor) -> Tensor:
    """End states [K, H, DK, DV] in float32; tokens may lie any distance apart."""
    assert all(x[:1].is_contiguous() for x in (k, v, slope))
    (_, n_heads, dk), dv = k.shape, v.shape[2]
    n_segments = offsets.shape[0] - 1
    out = k.new_empty((n_segments, n_heads, dk, dv), dtype=torch.float32)
    _end_states[(n_heads, triton.cdiv(dv, COLUMNS), n_segments)](
        k,
        v,
        slope,
        offsets,
        out,
        k.stride(0),
        v.stride(0),
        DK=dk,
        DV=dv,
        K_BLOCK=max(16, triton.next_power_of_2(dk)),
        COLUMNS=COLUMNS,
        TOKENS=TOKENS,
        num_warps=4,
    )
    return out
