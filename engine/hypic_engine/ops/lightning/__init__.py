"""Lightning attention: outputs and states of runs of tokens with cached segments in between."""

from torch import Tensor

from ..choice import runs_kernel
from .reference import chunked, end_state, recurrent, rotated
from .reference import walk_pool as on_cpu

__all__ = ["chunked", "end_state", "recurrent", "rotated", "walk_pool"]


def walk_pool(  # noqa: PLR0917 - what the rule takes, then the runs
    q: Tensor,
    k: Tensor,
    v: Tensor,
    slope: Tensor,
    state: Tensor,
    run_offsets: Tensor,
    operator_slots: Tensor,
    lengths: Tensor,
    deltas: Tensor,
    pool: Tensor,
    cos_sin: Tensor,
) -> tuple[Tensor, Tensor]:
    """Outputs [T, H, DV] and the last state, runs and operators given by index tensors.

    The tokens of all runs lie back to back. After run i the segment in slot ``operator_slots[i]``
    is applied: the state decays over its tokens, and its own end state is added, turned to where
    the segment stands.

    Args:
        q: [T, H, DK], turned to true positions; k alike, v [T, H, DV].
        k: keys.
        v: values.
        slope: decay rate of each head [H].
        state: [H, DK, DV], not changed.
        run_offsets: int32 [N + 1]; run i is tokens [run_offsets[i], run_offsets[i + 1]).
        operator_slots: int32 [N]; -1 where run i is followed by nothing.
        lengths: int32 [N], tokens over which the state decays.
        deltas: int64 [N], true position of the segment less the one that it was computed at; not
            negative.
        pool: end states [slots, H, DK, DV], bfloat16 or float32.
        cos_sin: float32 [positions, rotary dimensions], cosines then sines.
    """
    arguments = (q, k, v, slope, state, run_offsets, operator_slots, lengths, deltas, pool, cos_sin)
    if runs_kernel(q):
        from .kernel import walk_pool as on_gpu  # noqa: PLC0415 - a CPU may lack a working Triton

        return on_gpu(*arguments)
    return on_cpu(*arguments)
