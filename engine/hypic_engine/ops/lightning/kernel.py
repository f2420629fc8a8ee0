"""Lightning attention's walks on a GPU: one program a walk, head and block of state columns.

Columns of a state never mix, so each program takes its columns through all runs and operators
alone, the state kept on chip. A stored state is turned while it is loaded. Same results as the
reference; reads index tensors on the device and never waits for the host.
"""

# A kernel takes pointers, numbers and constants (in capitals); Triton types them.
# ruff: noqa: ANN001, ANN202, N803, PLR0917
# mypy: disable-error-code="untyped-decorator,no-untyped-def"

import triton
import triton.language as tl
from torch import Tensor

from ..runs import Runs

COLUMNS = 16
"""State columns of a program."""


@triton.jit
def _turned_tile(base, key, column, in_tile, angles, DV: tl.constexpr, ROTARY: tl.constexpr):
    """A stored state's tile [DK, COLUMNS], its key axis turned; pairs are halves."""
    half: tl.constexpr = ROTARY // 2
    turns = key < ROTARY
    is_first = key < half
    partner = tl.where(is_first, key + half, key - half)
    pair = tl.where(is_first, key, partner)
    cos = tl.load(angles + pair, mask=turns, other=1.0)
    sin = tl.load(angles + half + pair, mask=turns, other=0.0)
    sin = tl.where(is_first, -sin, sin)
    own = tl.load(base + key[:, None] * DV + column[None, :], mask=in_tile, other=0.0)
    others = in_tile & turns[:, None]
    other = tl.load(base + partner[:, None] * DV + column[None, :], mask=others, other=0.0)
    return own.to(tl.float32) * cos[:, None] + other.to(tl.float32) * sin[:, None]


@triton.jit
def _walk(
    q,
    k,
    v,
    slopes,
    states,
    slots,
    first,
    starts,
    ends,
    segments,
    lengths,
    deltas,
    pool,
    cos_sin,
    out,
    scale,
    q_token,
    k_token,
    v_token,
    state_slot,
    pool_slot,
    cos_sin_row,
    out_token,
    DK: tl.constexpr,
    DV: tl.constexpr,
    K_BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROTARY: tl.constexpr,
):
    head = tl.program_id(0)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    walk = tl.program_id(2)
    key = tl.arange(0, K_BLOCK)
    is_key, is_column = key < DK, column < DV
    in_tile = is_key[:, None] & is_column[None, :]
    slope = tl.load(slopes + head)
    decay = tl.exp(-slope)

    state = states + tl.load(slots + walk).to(tl.int64) * state_slot
    state += head * DK * DV + key[:, None] * DV + column[None, :]
    h = tl.load(state, mask=in_tile, other=0.0).to(tl.float32)
    for run in range(tl.load(first + walk), tl.load(first + walk + 1)):
        start, end = tl.load(starts + run), tl.load(ends + run)
        at = start.to(tl.int64)
        for _ in range(start, end):
            keys = tl.load(k + at * k_token + head * DK + key, mask=is_key, other=0.0)
            query = tl.load(q + at * q_token + head * DK + key, mask=is_key, other=0.0)
            value = tl.load(v + at * v_token + head * DV + column, mask=is_column, other=0.0)
            h = h * decay + keys.to(tl.float32)[:, None] * value.to(tl.float32)[None, :]
            read = tl.sum(h * query.to(tl.float32)[:, None], 0) * scale
            read = read.to(out.dtype.element_ty)
            tl.store(out + at * out_token + head * DV + column, read, mask=is_column)
            at += 1
        segment = tl.load(segments + run).to(tl.int64)
        if segment >= 0:
            base = pool + segment * pool_slot + head * DK * DV
            angles = cos_sin + tl.load(deltas + run) * cos_sin_row
            added = _turned_tile(base, key, column, in_tile, angles, DV, ROTARY)
            h = h * tl.exp(-slope * tl.load(lengths + run)) + added
    tl.store(state, h.to(states.dtype.element_ty), mask=in_tile)


def walk_pool(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    slope: Tensor,
    states: Tensor,
    slots: Tensor,
    runs: Runs,
    pool: Tensor,
    cos_sin: Tensor,
    out: Tensor,
) -> None:
    """The walks.

    Tokens may lie any distance apart, so that slices of a layer's projection need no copy; heads
    and dimensions must be contiguous within a token and within a slot.
    """
    assert all(x[:1].is_contiguous() for x in (q, k, v, states, pool, cos_sin, out))
    assert slope.is_contiguous()
    n_heads, dv = v.shape[1:]
    dk = k.shape[2]
    _walk[(n_heads, triton.cdiv(dv, COLUMNS), len(runs))](
        q,
        k,
        v,
        slope,
        states,
        slots,
        runs.first,
        runs.starts,
        runs.ends,
        runs.segments,
        runs.lengths,
        runs.deltas,
        pool,
        cos_sin,
        out,
        dk**-0.5,
        q.stride(0),
        k.stride(0),
        v.stride(0),
        states.stride(0),
        pool.stride(0),
        cos_sin.stride(0),
        out.stride(0),
        DK=dk,
        DV=dv,
        K_BLOCK=triton.next_power_of_2(dk),
        COLUMNS=COLUMNS,
        ROTARY=cos_sin.shape[1],
        num_warps=4,
    )
