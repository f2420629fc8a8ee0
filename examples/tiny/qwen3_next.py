"""The tiny Qwen3.5 model's numbers in the Qwen3-Next architecture: other names, another order.

A linear layer's projections are two matrices there, grouped by key head. SGLang has no dense layers
of this architecture, so the MLP is the only expert.
"""

from typing import Any

import torch
from torch import Tensor

from . import qwen3_5 as base
from .noise import VOCAB, projection

GROUP = base.V_HEADS // base.K_HEADS


def config() -> dict[str, Any]:
    """config.json."""
    text = base.text_config()
    kept = {key: value for key, value in text.items() if key not in {"rope_parameters", "dtype"}}
    return kept | {
        "architectures": ["Qwen3NextForCausalLM"],
        "model_type": "qwen3_next",
        "vocab_size": VOCAB,
        "rope_theta": text["rope_parameters"]["rope_theta"],
        "rope_scaling": None,
        "decoder_sparse_step": 1,
        "num_experts": 1,
        "num_experts_per_tok": 1,
        "moe_intermediate_size": base.MLP,
        "shared_expert_intermediate_size": 0,
        "norm_topk_prob": True,
        "mlp_only_layers": [],
        "torch_dtype": "bfloat16",
    }


def _by_key_head(*parts: Tensor) -> Tensor:
    """Rows of several matrices, dealt out to the key heads."""
    dealt = [part.unflatten(0, (base.K_HEADS, -1)) for part in parts]
    return torch.cat(dealt, 1).flatten(0, 1)


def _linear_attention(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    def take(part: str) -> Tensor:
        return tensors.pop(f"{prefix}.in_proj_{part}.weight")

    q, k, v = take("qkv").split([base.KEY_DIM, base.KEY_DIM, base.VALUE_DIM])
    z, b, a = take("z"), take("b"), take("a")
    return {
        f"{prefix}.in_proj_qkvz.weight": _by_key_head(q, k, v, z),
        f"{prefix}.in_proj_ba.weight": _by_key_head(b, a),
    }


def weights() -> dict[str, Tensor]:
    """All tensors by their names in a checkpoint."""
    tensors = base.language_weights()
    for index, kind in enumerate(base.LAYERS):
        router = f"{base.PREFIX}.layers.{index}.mlp.gate.weight"
        tensors[router] = projection(router, 1, base.HIDDEN)
        if kind == "linear_attention":
            tensors |= _linear_attention(f"{base.PREFIX}.layers.{index}.linear_attn", tensors)
    renamed = {base.PREFIX: "model"} | {
        f"mlp.{part}_proj": f"mlp.experts.0.{part}_proj" for part in ("gate", "up", "down")
    }
    return {_renamed(name, renamed): tensor for name, tensor in tensors.items()}


def _renamed(name: str, parts: dict[str, str]) -> str:
    for old, new in parts.items():
        name = name.replace(old, new)
    return name
