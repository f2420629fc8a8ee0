"""What a short convolution saw last before each run of tokens."""

from torch import Tensor

from ..choice import runs_kernel
from .reference import gather as _reference

__all__ = ["gather"]


def gather(stored: Tensor, segments: Tensor, own: Tensor, slots: Tensor, rows: Tensor) -> Tensor:
    """Each run's last inputs [R, D, W]: of the segment before it, of its own prefix, or zeros.

    Args:
        stored: tails of cached segments [segments, D, W].
        segments: int64 [R], the segment that precedes the run; 0 where none does.
        own: where requests keep theirs [slots, D, W], of the same type.
        slots: int64 [B], of each request.
        rows: int64 [R], the request that the run goes on with; -1 where it does not.
    """
    if runs_kernel(stored):
        from .kernel import gather as on_gpu  # noqa: PLC0415 - a CPU may lack a working Triton

        return on_gpu(stored, segments, own, slots, rows)
    return _reference(stored, segments, own, slots, rows)
