"""A tiny hybrid of the Qwen3.5 architecture: gated delta networks and gated full attention."""

from collections.abc import Iterator
from typing import Any

import torch

from . import vision
from .noise import VOCAB, decoder, normal, projection, spread, vocabulary

HIDDEN, MLP, POSITIONS = 128, 256, 32_768
HEADS, KV_HEADS, HEAD_DIM, ROTARY_DIM = 4, 2, 64, 16
K_HEADS, V_HEADS, LINEAR_DIM, CONV_WIDTH = 2, 4, 64, 4
LAYERS = (*["linear_attention"] * 3, "full_attention") * 2
KEY_DIM, VALUE_DIM = K_HEADS * LINEAR_DIM, V_HEADS * LINEAR_DIM
EPS = 1e-6
END_OF_ANSWER = 258
PREFIX = "model.language_model"


def text_config() -> dict[str, Any]:
    """The language model's part of config.json."""
    return {
        "model_type": "qwen3_5_text",
        "vocab_size": VOCAB,
        "hidden_size": HIDDEN,
        "intermediate_size": MLP,
        "num_hidden_layers": len(LAYERS),
        "layer_types": list(LAYERS),
        "full_attention_interval": 4,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "attn_output_gate": True,
        "attention_bias": False,
        "linear_num_key_heads": K_HEADS,
        "linear_num_value_heads": V_HEADS,
        "linear_key_head_dim": LINEAR_DIM,
        "linear_value_head_dim": LINEAR_DIM,
        "linear_conv_kernel_dim": CONV_WIDTH,
        "mamba_ssm_dtype": "float32",
        "hidden_act": "silu",
        "rms_norm_eps": EPS,
        "max_position_embeddings": POSITIONS,
        "partial_rotary_factor": ROTARY_DIM / HEAD_DIM,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "partial_rotary_factor": ROTARY_DIM / HEAD_DIM,
            "mrope_interleaved": True,
            "mrope_section": [3, 3, 2],
        },
        "tie_word_embeddings": False,
        "eos_token_id": END_OF_ANSWER,
        "dtype": "bfloat16",
    }


def config() -> dict[str, Any]:
    """config.json; the vision tower is there because the architecture has one."""
    return {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "model_type": "qwen3_5",
        "text_config": text_config(),
        "vision_config": vision.config(HIDDEN),
        "image_token_id": 500,
        "video_token_id": 501,
        "vision_start_token_id": 502,
        "vision_end_token_id": 503,
        "tie_word_embeddings": False,
        "dtype": "bfloat16",
    }


def _linear_attention(prefix: str) -> Iterator[tuple[str, torch.Tensor]]:
    mixed = 2 * KEY_DIM + VALUE_DIM
    for part, rows, gain in (("qkv", mixed, 1.5), ("z", VALUE_DIM, 1.0), ("b", V_HEADS, 1.0)):
        name = f"{prefix}.in_proj_{part}.weight"
        yield name, projection(name, rows, HIDDEN, gain=gain)
    name = f"{prefix}.in_proj_a.weight"
    yield name, projection(name, V_HEADS, HIDDEN, gain=0.5)
    name = f"{prefix}.conv1d.weight"
    yield name, normal(name, (mixed, 1, CONV_WIDTH), std=0.7)
    # A head forgets between a thousandth and a fifth of its state a token: memories of all lengths.
    name = f"{prefix}.A_log"
    slow_to_fast = torch.tensor([-5 + 5 * head / (V_HEADS - 1) for head in range(V_HEADS)])
    yield name, slow_to_fast + spread(name, V_HEADS, low=-0.5, high=0.5)
    name = f"{prefix}.dt_bias"
    yield name, spread(name, V_HEADS, low=-2.0, high=-1.0)
    name = f"{prefix}.norm.weight"
    yield name, 1 + normal(name, (LINEAR_DIM,), std=0.1)
    name = f"{prefix}.out_proj.weight"
    yield name, projection(name, HIDDEN, VALUE_DIM, gain=2.0)


def _full_attention(prefix: str) -> Iterator[tuple[str, torch.Tensor]]:
    query, key_value = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    for part, rows in (("q", 2 * query), ("k", key_value), ("v", key_value)):
        name = f"{prefix}.{part}_proj.weight"
        yield name, projection(name, rows, HIDDEN)
    name = f"{prefix}.o_proj.weight"
    yield name, projection(name, HIDDEN, query, gain=3.0)
    # Wide queries and keys make attention choose few tokens, so that each of them tells; wider
    # still where they are turned by position, so that a key in the wrong place tells as well.
    width = torch.tensor([1.4] * ROTARY_DIM + [0.5] * (HEAD_DIM - ROTARY_DIM))
    for part in ("q", "k"):
        name = f"{prefix}.{part}_norm.weight"
        yield name, width + normal(name, (HEAD_DIM,), std=0.1)


def language_weights() -> dict[str, torch.Tensor]:
    """The language model's tensors by their names in a checkpoint."""
    embed, norm = f"{PREFIX}.embed_tokens.weight", f"{PREFIX}.norm.weight"
    tensors = vocabulary(embed, norm, HIDDEN, gemma=True)
    for index, kind in enumerate(LAYERS):
        prefix = f"{PREFIX}.layers.{index}"
        tensors |= decoder(prefix, HIDDEN, MLP, gemma=True)
        if kind == "linear_attention":
            tensors.update(_linear_attention(f"{prefix}.linear_attn"))
        else:
            tensors.update(_full_attention(f"{prefix}.self_attn"))
    return tensors


def weights() -> dict[str, torch.Tensor]:
    """All tensors by their names in a checkpoint."""
    return language_weights() | dict(vision.weights(HIDDEN))
