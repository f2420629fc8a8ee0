"""Gathering tails on a GPU: one program a run and block of channels. Same bits as the reference."""

# A kernel takes pointers, numbers and constants (in capitals); Triton types them.
# ruff: noqa: ANN001, ANN202, N803, PLR0917
# mypy: disable-error-code="untyped-decorator,no-untyped-def"

import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024
"""Values of a program."""


@triton.jit
def _gather(
    stored,
    segments,
    own,
    slots,
    rows,
    out,
    stored_slot,
    own_slot,
    SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    run = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < SIZE
    segment, row = tl.load(segments + run), tl.load(rows + run)
    slot = tl.load(slots + row, mask=row >= 0, other=0)
    follows, continues = inside & (segment > 0), inside & (row >= 0)
    tail = tl.load(stored + segment * stored_slot + at, mask=follows, other=0.0)
    prefix = tl.load(own + slot * own_slot + at, mask=continues, other=0.0)
    tl.store(out + run * SIZE + at, tl.where(follows, tail, prefix), mask=inside)


def gather(stored: Tensor, segments: Tensor, own: Tensor, slots: Tensor, rows: Tensor) -> Tensor:
    """Tails [R, D, W]; a slot's values must be contiguous."""
    assert all(x[:1].is_contiguous() for x in (stored, own))
    assert stored.dtype == own.dtype
    n_runs, size = segments.shape[0], stored[0].numel()
    out = own.new_empty(n_runs, *own.shape[1:])
    _gather[(n_runs, triton.cdiv(size, BLOCK))](
        stored,
        segments,
        own,
        slots,
        rows,
        out,
        stored.stride(0),
        own.stride(0),
        SIZE=size,
        BLOCK=BLOCK,
    )
    return out
