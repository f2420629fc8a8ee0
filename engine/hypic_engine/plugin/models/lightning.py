"""What SGLang 0.5.14 lacks for Lightning models, with segments or without: hooks on its pools.

Knows nothing of segments.
"""

from collections.abc import Callable
from typing import Any

Buffers = tuple[list[int], list[int], list[int]]
"""Addresses, sizes, and sizes of one state; in bytes, one for each tensor and layer."""


def value_buffer(original: Callable[..., Any], pool: Any, layer_id: int) -> Any:
    """Around ``HybridLinearKVPool.get_value_buffer``: layer 0 stands for any with values.

    The Triton backend takes the size of values from layer 0, linear in a hybrid model, unless the
    model is of a family that it lists; Lightning is not among them.
    """
    known = pool.full_attention_layer_id_mapping
    return original(pool, layer_id if layer_id or 0 in known else next(iter(known)))


def state_buffers(buffers: Buffers, *_: Any) -> Buffers:
    """After ``MambaPool.get_contiguous_buf_infos``: a prefill server sends what has bytes.

    Lightning has no convolution. Its tensor of no bytes has no address, and a transfer that names
    it fails whole.
    """
    kept = [one for one in zip(*buffers, strict=True) if one[-1]]
    addresses, sizes, of_one = (list(column) for column in zip(*kept, strict=True))
    return addresses, sizes, of_one


def state_dims(dims: list[int], *_: Any) -> list[int]:
    """After ``MambaPool.get_state_dim_per_tensor``: of the same tensors."""
    return [n for n in dims if n]
