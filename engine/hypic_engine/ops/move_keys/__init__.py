"""Copies of cached keys and values at other positions of a prompt."""

from torch import Tensor

from ..choice import runs_kernel
from .reference import move as _reference

__all__ = ["move"]


def move(
    k_cache: Tensor,
    v_cache: Tensor,
    src: Tensor,
    dst: Tensor,
    delta: Tensor,
    cos_sin: Tensor,
    rotary_dim: int,
    neox: bool,  # noqa: FBT001 - SGLang's own argument, fixed for a model
) -> None:
    """Copy rows `src` to rows `dst`, keys turned to where they stand now.

    Text positions of M-RoPE are equal on all three axes, so its keys move like plain ones.

    Args:
        k_cache: keys of one layer [slots, HKV, D], written in place.
        v_cache: values [slots, HKV, DV], written in place, never turned.
        src: int64 [n].
        dst: int64 [n], distinct; none of them may be in `src` unless it stays where it is.
        delta: int64 [n], true position less the one that the key was computed at; 0 copies bits.
        cos_sin: [positions, rotary_dim], cosines then sines, longer than any ``abs(delta)``. Give
            float32: SGLang casts its own table to the model's type in the first forward on a GPU.
        rotary_dim: how many leading dimensions of a key turn.
        neox: pairs are halves of those dimensions; else neighbours.
    """
    if runs_kernel(k_cache):
        from .kernel import move as on_gpu  # noqa: PLC0415 - a CPU may lack a working Triton

        on_gpu(k_cache, v_cache, src, dst, delta, cos_sin, rotary_dim, neox)
    else:
        _reference(k_cache, v_cache, src, dst, delta, cos_sin, rotary_dim, neox)
