"""Where operators of cached segments lie: states and, where there are any, transitions and tails.

Sized from the memory that weights leave; slot 0 is never handed out. Does not know whose a slot is.
"""

from dataclasses import dataclass
from typing import Any

import torch

from ...core.layout import CONVOLUTION_TAIL_TOKENS
from ...core.slots import Slots

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Shape:
    """What one segment's operators occupy.

    Attributes:
        n_layers: linear layers.
        n_heads: heads of this rank that have a state.
        state: rows and columns of a head's state.
        d_transition: rows and columns of its transition; 0 where that is a known number.
        conv_dim: channels of the convolution; 0 where there is none.
        conv_dtype: dtype of the convolution's inputs.
    """

    n_layers: int
    n_heads: int
    state: tuple[int, int]
    d_transition: int
    conv_dim: int
    conv_dtype: torch.dtype

    def n_bytes(self, dtype: torch.dtype) -> int:
        """Bytes of one slot."""
        rows, columns = self.state
        operators: int = self.n_heads * (rows * columns + self.d_transition**2) * dtype.itemsize
        tail: int = self.conv_dim * CONVOLUTION_TAIL_TOKENS * self.conv_dtype.itemsize
        return self.n_layers * (operators + tail)


def shape_of(mamba_pool: Any, *, stores_transitions: bool) -> Shape:
    """The shape of SGLang's own pool: temporal [L, slots, H, rows, columns], conv [L, slots, D, 3].

    A transition acts on the columns of a state.
    """
    temporal, conv = mamba_pool.mamba_cache.temporal, mamba_pool.mamba_cache.conv[0]
    n_layers, _, n_heads, rows, columns = temporal.shape
    d_transition = columns if stores_transitions else 0
    return Shape(n_layers, n_heads, (rows, columns), d_transition, conv.shape[2], conv.dtype)


class OperatorPool:
    """Tensors for the operators of cached segments.

    Attributes:
        slots: which places of the tensors are taken.
        states: S [layers, slots + 1, HV, rows, columns].
        transitions: T [layers, slots + 1, HV, columns, columns], or empty.
        tails: the last three inputs of the convolution [layers, slots + 1, D, 3].
    """

    def __init__(self, shape: Shape, *, n_slots: int, dtype: torch.dtype, device: str) -> None:
        rows = (shape.n_layers, n_slots + 1)
        heads = (shape.n_heads, *shape.state)
        steps = (shape.n_heads, shape.d_transition, shape.d_transition)
        tails = (shape.conv_dim, CONVOLUTION_TAIL_TOKENS)
        self.states = torch.empty((*rows, *heads), dtype=dtype, device=device)
        self.transitions = torch.empty((*rows, *steps), dtype=dtype, device=device)
        self.tails = torch.empty((*rows, *tails), dtype=shape.conv_dtype, device=device)
        self.slots = Slots(n_slots)
        self.slot_bytes = shape.n_bytes(dtype)


def n_slots(shape: Shape, *, dtype: torch.dtype, memory_gib: float, n_kv_tokens: int) -> int:
    """Slots that fit the memory, and no more than the key/value pool could ever use."""
    return min(int(memory_gib * GIB) // shape.n_bytes(dtype), max(n_kv_tokens // 4, 1))
