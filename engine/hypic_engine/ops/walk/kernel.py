"""The walks on a GPU: one program a walk, value head and block of state rows, the state on chip.

Rows of a state never mix, so each program takes its rows through all runs and operators alone. Same
results as the reference; reads index tensors on the device and never waits for the host.
"""

# A kernel takes pointers, numbers and constants (in capitals); Triton types them.
# ruff: noqa: ANN001, ANN202, N803, PLR0917
# mypy: disable-error-code="untyped-decorator,no-untyped-def"

import triton
import triton.language as tl
from torch import Tensor

from ..delta_rule.inputs import NORM_EPS
from ..runs import Runs

ROWS = 16
"""State rows of a program: the least that tensor cores multiply."""


@triton.jit
def _unit(x, EPS: tl.constexpr):
    return x * tl.rsqrt(tl.sum(x * x) + EPS)


@triton.jit
def _walk(
    q,
    k,
    v,
    g,
    beta,
    states,
    slots,
    first,
    starts,
    ends,
    segments,
    s_pool,
    t_pool,
    out,
    scale,
    q_token,
    k_token,
    v_token,
    g_token,
    beta_token,
    state_slot,
    s_slot,
    t_slot,
    out_token,
    GROUP: tl.constexpr,
    DK: tl.constexpr,
    DV: tl.constexpr,
    K_BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
    EPS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    head = tl.program_id(0)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    walk = tl.program_id(2)
    column = tl.arange(0, K_BLOCK)
    is_row, is_column = row < DV, column < DK
    tile = head * DV * DK + row[:, None] * DK + column[None, :]
    in_tile = is_row[:, None] & is_column[None, :]
    square = head * DK * DK + column[:, None] * DK + column[None, :]
    in_square = is_column[:, None] & is_column[None, :]

    state = states + tl.load(slots + walk).to(tl.int64) * state_slot + tile
    h = tl.load(state, mask=in_tile, other=0.0).to(tl.float32)
    for run in range(tl.load(first + walk), tl.load(first + walk + 1)):
        start, end = tl.load(starts + run), tl.load(ends + run)
        at = start.to(tl.int64)
        for _ in range(start, end):
            key_at = (head // GROUP) * DK + column
            key = tl.load(k + at * k_token + key_at, mask=is_column, other=0.0).to(tl.float32)
            query = tl.load(q + at * q_token + key_at, mask=is_column, other=0.0).to(tl.float32)
            value = tl.load(v + at * v_token + head * DV + row, mask=is_row, other=0.0)
            decay = tl.exp(tl.load(g + at * g_token + head).to(tl.float32))
            strength = tl.load(beta + at * beta_token + head).to(tl.float32)
            key = _unit(key, EPS)
            query = _unit(query, EPS) * scale
            h = h * decay
            written = strength * (value.to(tl.float32) - tl.sum(h * key[None, :], 1))
            h += written[:, None] * key[None, :]
            read = tl.sum(h * query[None, :], 1).to(out.dtype.element_ty)
            tl.store(out + at * out_token + head * DV + row, read, is_row)
            at += 1
        segment = tl.load(segments + run).to(tl.int64)
        if segment >= 0:
            t_at, s_at = t_pool + segment * t_slot + square, s_pool + segment * s_slot + tile
            transition = tl.load(t_at, mask=in_square, other=0.0).to(tl.float32)
            end_state = tl.load(s_at, mask=in_tile, other=0.0).to(tl.float32)
            h = tl.dot(h, transition, input_precision=PRECISION) + end_state
    tl.store(state, h.to(states.dtype.element_ty), mask=in_tile)


def walk_pool(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    states: Tensor,
    slots: Tensor,
    runs: Runs,
    S_pool: Tensor,
    T_pool: Tensor,
    out: Tensor,
    *,
    precision: str = "tf32x3",
) -> None:
    """The walks; `precision` is that of the product of state and transition.

    Tokens may lie any distance apart, so that slices of a layer's mixed projection need no copy;
    heads and dimensions must be contiguous within a token and within a slot.
    """
    assert all(x[:1].is_contiguous() for x in (q, k, v, g, beta, states, S_pool, T_pool, out))
    n_heads, dv = v.shape[1:]
    n_key_heads, dk = k.shape[1:]
    _walk[(n_heads, triton.cdiv(dv, ROWS), len(runs))](
        q,
        k,
        v,
        g,
        beta,
        states,
        slots,
        runs.first,
        runs.starts,
        runs.ends,
        runs.segments,
        S_pool,
        T_pool,
        out,
        dk**-0.5,
        q.stride(0),
        k.stride(0),
        v.stride(0),
        g.stride(0),
        beta.stride(0),
        states.stride(0),
        S_pool.stride(0),
        T_pool.stride(0),
        out.stride(0),
        GROUP=n_heads // n_key_heads,
        DK=dk,
        DV=dv,
        K_BLOCK=max(16, triton.next_power_of_2(dk)),
        ROWS=ROWS,
        EPS=NORM_EPS,
        PRECISION=precision,
        num_warps=8,
    )
