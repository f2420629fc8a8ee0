"""How a model's layers turn their queries and keys, read from the model itself.

Turns nothing: gives `ops` the tables that they take.
"""

from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Rotary:
    """One layer's rotary embedding.

    Attributes:
        cos_sin: float32 [positions, dim], cosines then sines, of length one. SGLang's own table may
            carry YaRN's factor, which a key has already; and it is cast to the model's dtype in the
            first forward.
        dim: how many dimensions of a key turn.
        neox: pairs are halves of those dimensions; else neighbours.
    """

    cos_sin: torch.Tensor
    dim: int
    neox: bool


def of_layer(model: torch.nn.Module, layer_id: int) -> Rotary | None:
    """The rotary embedding that the attention of this layer uses, if it has one."""
    for module in model.modules():
        rotary = getattr(module, "rotary_emb", None)
        if rotary is None or not hasattr(rotary, "cos_sin_cache"):
            continue
        if any(getattr(child, "layer_id", None) == layer_id for child in module.children()):
            if getattr(module, "linear_rope", True):
                return _read(rotary)
            return None
    return None


def _read(rotary: Any) -> Rotary:
    table = rotary.cos_sin_cache.float()
    magnitude = table[0, 0]  # the cosine of position 0
    return Rotary((table / magnitude).clone(), rotary.rotary_dim, rotary.is_neox_style)
