"""The walk on a GPU: one program a value head and block of state rows, the state kept on chip.

Rows of a state never mix, so each program takes its rows through all runs and operators alone. Same
results as the reference; reads index tensors on the device and never waits for the host.
"""

# A kernel takes pointers, numbers and constants (in capitals); Triton types them.
# ruff: noqa: ANN001, ANN202, N803, PLR0917
# mypy: disable-error-code="untyped-decorator,no-untyped-def"

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..delta_rule.inputs import NORM_EPS

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
    state,
    run_offsets,
    operator_slots,
    s_pool,
    t_pool,
    out,
    last,
    n_runs,
    scale,
    q_token,
    k_token,
    v_token,
    g_token,
    beta_token,
    s_slot,
    t_slot,
    HEADS: tl.constexpr,
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
    column = tl.arange(0, K_BLOCK)
    is_row, is_column = row < DV, column < DK
    tile = row[:, None] * DK + column[None, :]
    in_tile = is_row[:, None] & is_column[None, :]
    square = column[:, None] * DK + column[None, :]
    in_square = is_column[:, None] & is_column[None, :]

    h = tl.load(state + head * DV * DK + tile, mask=in_tile, other=0.0).to(tl.float32)
    start = tl.load(run_offsets)
    for run in range(n_runs):
        end = tl.load(run_offsets + run + 1)
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
            read = tl.sum(h * query[None, :], 1)
            tl.store(out + (at * HEADS + head) * DV + row, read, is_row)
            at += 1
        slot = tl.load(operator_slots + run).to(tl.int64)
        if slot >= 0:
            t_at = t_pool + slot * t_slot + head * DK * DK
            s_at = s_pool + slot * s_slot + head * DV * DK
            transition = tl.load(t_at + square, mask=in_square, other=0.0).to(tl.float32)
            end_state = tl.load(s_at + tile, mask=in_tile, other=0.0).to(tl.float32)
            h = tl.dot(h, transition, input_precision=PRECISION) + end_state
        start = end
    tl.store(last + head * DV * DK + tile, h, mask=in_tile)


def walk_pool(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    state: Tensor,
    run_offsets: Tensor,
    operator_slots: Tensor,
    S_pool: Tensor,
    T_pool: Tensor,
    *,
    precision: str = "tf32x3",
) -> tuple[Tensor, Tensor]:
    """The walk; `precision` is that of the product of state and transition.

    Tokens may lie any distance apart, so that slices of a layer's mixed projection need no copy;
    heads and dimensions must be contiguous within a token and within a slot.
    """
    assert all(x[:1].is_contiguous() for x in (q, k, v, g, beta, S_pool, T_pool))
    n_tokens, n_heads, dv = v.shape
    n_key_heads, dk = k.shape[1:]
    out = torch.empty(n_tokens, n_heads, dv, dtype=torch.float32, device=v.device)
    last = torch.empty(n_heads, dv, dk, dtype=torch.float32, device=v.device)
    _walk[(n_heads, triton.cdiv(dv, ROWS))](
        q,
        k,
        v,
        g,
        beta,
        state.contiguous(),
        run_offsets,
        operator_slots,
        S_pool,
        T_pool,
        out,
        last,
        operator_slots.shape[0],
        dk**-0.5,
        q.stride(0),
        k.stride(0),
        v.stride(0),
        g.stride(0),
        beta.stride(0),
        S_pool.stride(0),
        T_pool.stride(0),
        HEADS=n_heads,
        GROUP=n_heads // n_key_heads,
        DK=dk,
        DV=dv,
        K_BLOCK=max(16, triton.next_power_of_2(dk)),
        ROWS=ROWS,
        EPS=NORM_EPS,
        PRECISION=precision,
        num_warps=8,
    )
    return out, last
