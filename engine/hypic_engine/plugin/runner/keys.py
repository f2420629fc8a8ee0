"""Copies of cached keys and values at their true positions, in every full-attention layer.

Knows how SGLang lays out a layer's cache: keys and values apart, or one latent row (MLA) whose last
dimensions alone depend on the position. Does not choose what moves (`plan`).
"""

from typing import Any

import torch
from torch import Tensor

from ...ops import move_keys
from . import rotary
from .plan import Moves


class CachedKeys:
    """The full-attention layers' part of SGLang's key/value pool."""

    def __init__(self, pool: Any, layer_ids: list[int], model: torch.nn.Module) -> None:
        """Find how the layers turn their keys; all of them do it alike.

        Raises:
            RuntimeError: they do not turn them at all.
        """
        found = rotary.of_layer(model, layer_ids[0])
        if found is None:
            raise RuntimeError(f"layer {layer_ids[0]} has no rotary embedding with a cos_sin_cache")
        self._pool = pool
        self._layer_ids = layer_ids
        self._rotary = found

    def move(self, moves: Moves) -> None:
        """Make the copies, in all layers."""
        for layer_id in self._layer_ids:
            keys, values = self._buffers(layer_id)
            move_keys.move(
                keys,
                values,
                moves.source,
                moves.target,
                moves.delta,
                self._rotary.cos_sin,
                rotary_dim=self._rotary.dim,
                neox=self._rotary.neox,
            )

    def _buffers(self, layer_id: int) -> tuple[Tensor, Tensor]:
        """What turns and what is copied as it is."""
        keys = self._pool.get_key_buffer(layer_id)
        if not self._pool.use_mla:
            return keys, self._pool.get_value_buffer(layer_id)
        rank = keys.shape[-1] - self._rotary.dim
        return keys[..., rank:], keys[..., :rank]
