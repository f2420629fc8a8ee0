"""One request in one linear layer: runs of tokens in place, cached segments in between."""

from torch import Tensor

from ..choice import runs_kernel
from .reference import walk
from .reference import walk_pool as on_cpu

__all__ = ["walk", "walk_pool"]


def walk_pool(  # noqa: PLR0917 - what the rule takes, then the runs
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    state: Tensor,
    run_offsets: Tensor,
    operator_slots: Tensor,
    S_pool: Tensor,  # noqa: N803 - the symbols of the mathematics
    T_pool: Tensor,  # noqa: N803
) -> tuple[Tensor, Tensor]:
    """Outputs [T, HV, DV] and the last state, runs and operators given by index tensors.

    The tokens of all runs lie back to back. After run i, the operator in slot
    ``operator_slots[i]`` is applied.

    Args:
        q: [T, HK, DK], as the convolution left it; k alike, v [T, HV, DV], g and beta [T, HV].
        k: keys.
        v: values.
        g: log decay.
        beta: write strength.
        state: [HV, DV, DK], not changed.
        run_offsets: int32 [N + 1]; run i is tokens [run_offsets[i], run_offsets[i + 1]).
        operator_slots: int32 [N]; -1 where run i is followed by nothing.
        S_pool: end states [slots, HV, DV, DK], bfloat16 or float32.
        T_pool: transitions [slots, HV, DK, DK], likewise.
    """
    if runs_kernel(q):
        from .kernel import walk_pool as on_gpu  # noqa: PLC0415 - a CPU may lack a working Triton

        return on_gpu(q, k, v, g, beta, state, run_offsets, operator_slots, S_pool, T_pool)
    return on_cpu(q, k, v, g, beta, state, run_offsets, operator_slots, S_pool, T_pool)
