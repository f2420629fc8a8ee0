"""One linear layer of a batch: runs of tokens in place, cached segments in between."""

from torch import Tensor

from ..choice import runs_kernel
from ..runs import Runs
from .reference import walk
from .reference import walk_pool as on_cpu

__all__ = ["walk", "walk_pool"]


def walk_pool(  # noqa: PLR0917 - what the rule takes, then the walks
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    states: Tensor,
    slots: Tensor,
    runs: Runs,
    S_pool: Tensor,  # noqa: N803 - the symbols of the mathematics
    T_pool: Tensor,  # noqa: N803
    out: Tensor,
) -> None:
    """All walks of a batch: outputs of their tokens, and each walk's state after its last step.

    Tokens of no run are not read, and their outputs are left alone.

    Args:
        q: [N, HK, DK], as the convolution left it; k alike, v [N, HV, DV], g and beta [N, HV].
        k: keys.
        v: values.
        g: log decay.
        beta: write strength.
        states: [slots, HV, DV, DK], bfloat16 or float32, changed in place.
        slots: int64 [W], the state that each walk begins with and ends in.
        runs: what the walks go through.
        S_pool: end states [segments, HV, DV, DK], bfloat16 or float32.
        T_pool: transitions [segments, HV, DK, DK], likewise.
        out: [N, HV, DV], written in place.
    """
    arguments = (q, k, v, g, beta, states, slots, runs, S_pool, T_pool, out)
    if runs_kernel(q):
        from .kernel import walk_pool as on_gpu  # noqa: PLC0415 - a CPU may lack a working Triton

        on_gpu(*arguments)
    else:
        on_cpu(*arguments)
