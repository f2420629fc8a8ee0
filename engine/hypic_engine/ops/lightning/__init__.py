"""Lightning attention: outputs and states of runs of tokens with cached segments in between."""

from torch import Tensor

from ..choice import runs_kernel
from ..runs import Runs
from .reference import chunked, recurrent, rotated
from .reference import end_states as _end_states
from .reference import walk_pool as on_cpu

__all__ = ["chunked", "end_states", "recurrent", "rotated", "walk_pool"]


def end_states(k: Tensor, v: Tensor, slope: Tensor, offsets: Tensor) -> Tensor:
    """What segments make of a state of zero: [K, H, DK, DV], float32.

    Args:
        k: [F, H, DK] of all segments back to back, turned; v [F, H, DV] alike.
        v: values.
        slope: decay rate of each head [H].
        offsets: int32 [K + 1], where the segments lie.
    """
    if runs_kernel(k):
        from .fill_kernel import end_states as on_gpu  # noqa: PLC0415 - as below

        return on_gpu(k, v, slope, offsets)
    return _end_states(k, v, slope, offsets)


def walk_pool(  # noqa: PLR0917 - what the rule takes, then the walks
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
    """All walks of a batch: outputs of their tokens, and each walk's state after its last step.

    Where a segment is applied the state decays over its tokens, and the segment's own end state is
    added, turned to where it stands. Tokens of no run are not read, their outputs left alone.

    Args:
        q: [N, H, DK], turned to true positions; k alike, v [N, H, DV].
        k: keys.
        v: values.
        slope: decay rate of each head [H].
        states: [slots, H, DK, DV], bfloat16 or float32, changed in place.
        slots: int64 [W], the state that each walk begins with and ends in.
        runs: what the walks go through.
        pool: end states [segments, H, DK, DV], bfloat16 or float32.
        cos_sin: float32 [positions, rotary dimensions], cosines then sines.
        out: [N, H, DV], written in place.
    """
    arguments = (q, k, v, slope, states, slots, runs, pool, cos_sin, out)
    if runs_kernel(q):
        from .kernel import walk_pool as on_gpu  # noqa: PLC0415 - a CPU may lack a working Triton

        on_gpu(*arguments)
    else:
        on_cpu(*arguments)
