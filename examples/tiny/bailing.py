"""Tiny hybrids of Lightning attention: Ring-linear-2.0 (GQA) and Bailing 2.5 (latent attention)."""

from typing import Any

from torch import Tensor

from .noise import VOCAB, decoder, normal, projection, vocabulary

# Stock Lightning kernels take heads of 128.
HIDDEN, MLP, POSITIONS, LAYERS, GROUP = 128, 256, 32_768, 8, 4
HEADS, KV_HEADS, HEAD_DIM, ROTARY = 4, 2, 128, 0.5
# Stock Triton kernels split latent rows of public models' sizes only.
LATENT, NOPE_DIM, ROPE_DIM, VALUE_DIM = 512, 64, 64, 64
EPS = 1e-6
END_OF_ANSWER = 258


def _config() -> dict[str, Any]:
    return {
        "vocab_size": VOCAB,
        "hidden_size": HIDDEN,
        "intermediate_size": MLP,
        "moe_intermediate_size": MLP,
        "num_hidden_layers": LAYERS,
        "layer_group_size": GROUP,
        "group_norm_size": 2,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "partial_rotary_factor": ROTARY,
        "use_qk_norm": True,
        "use_bias": False,
        "use_qkv_bias": False,
        "linear_silu": False,
        "hidden_act": "silu",
        "rms_norm_eps": EPS,
        "rope_theta": 10_000.0,
        "rope_scaling": None,
        "max_position_embeddings": POSITIONS,
        # One expert is a plain MLP.
        "num_experts": 1,
        "num_shared_experts": 0,
        "num_experts_per_tok": 1,
        "first_k_dense_replace": LAYERS,
        "moe_router_enable_expert_bias": False,
        "n_group": 0,
        "topk_group": 0,
        "norm_topk_prob": True,
        "num_nextn_predict_layers": 0,
        "tie_word_embeddings": False,
        "pad_token_id": 256,
        "eos_token_id": END_OF_ANSWER,
        "torch_dtype": "bfloat16",
    }


def ring_config() -> dict[str, Any]:
    """config.json of the one with grouped-query attention."""
    names = {
        "architectures": ["BailingMoeLinearV2ForCausalLM"],
        "model_type": "bailing_moe_linear",
    }
    return names | _config()


def latent_config() -> dict[str, Any]:
    """config.json of the one with latent attention."""
    names = {"architectures": ["BailingMoeV2_5ForCausalLM"], "model_type": "bailing_hybrid"}
    return (
        names
        | _config()
        | {
            "full_attention_type": "mla",
            "kv_lora_rank": LATENT,
            "q_lora_rank": None,
            "qk_nope_head_dim": NOPE_DIM,
            "qk_rope_head_dim": ROPE_DIM,
            "v_head_dim": VALUE_DIM,
            "rope_interleave": True,
        }
    )


def _norm(name: str, size: int, *, around: float = 1.0) -> Tensor:
    return around + normal(name, (size,), std=0.1)


def _linear_attention(prefix: str) -> dict[str, Tensor]:
    inner = HEADS * HEAD_DIM
    sizes = {"query_key_value": 3 * inner, "g_proj": inner}
    tensors = {
        f"{prefix}.{part}.weight": projection(f"{prefix}.{part}.weight", rows, HIDDEN)
        for part, rows in sizes.items()
    }
    for part, size in (
        ("query_layernorm", HEAD_DIM),
        ("key_layernorm", HEAD_DIM),
        ("g_norm", inner),
    ):
        name = f"{prefix}.{part}.weight"
        tensors[name] = _norm(name, size)
    name = f"{prefix}.dense.weight"
    return tensors | {name: projection(name, HIDDEN, inner, gain=2.0)}


def _grouped_attention(prefix: str) -> dict[str, Tensor]:
    name = f"{prefix}.query_key_value.weight"
    tensors = {name: projection(name, (HEADS + 2 * KV_HEADS) * HEAD_DIM, HIDDEN)}
    # Wide queries and keys make attention choose few tokens, so that each of them tells.
    for part in ("query_layernorm", "key_layernorm"):
        name = f"{prefix}.{part}.weight"
        tensors[name] = _norm(name, HEAD_DIM, around=1.3)
    name = f"{prefix}.dense.weight"
    return tensors | {name: projection(name, HIDDEN, HEADS * HEAD_DIM, gain=3.0)}


def _latent_attention(prefix: str) -> dict[str, Tensor]:
    sizes = {
        "q_proj": (HEADS * (NOPE_DIM + ROPE_DIM), HIDDEN, 2.0),
        "kv_a_proj_with_mqa": (LATENT + ROPE_DIM, HIDDEN, 2.0),
        "kv_b_proj": (HEADS * (NOPE_DIM + VALUE_DIM), LATENT, 1.0),
        "dense": (HIDDEN, HEADS * VALUE_DIM, 3.0),
    }
    tensors = {
        f"{prefix}.{part}.weight": projection(f"{prefix}.{part}.weight", rows, columns, gain=gain)
        for part, (rows, columns, gain) in sizes.items()
    }
    name = f"{prefix}.kv_a_layernorm.weight"
    return tensors | {name: _norm(name, LATENT)}


def _weights(full_attention: Any) -> dict[str, Tensor]:
    tensors = vocabulary("model.word_embeddings.weight", "model.norm.weight", HIDDEN, gemma=False)
    for index in range(LAYERS):
        prefix = f"model.layers.{index}"
        tensors |= decoder(prefix, HIDDEN, MLP, gemma=False)
        kind = full_attention if (index + 1) % GROUP == 0 else _linear_attention
        tensors |= kind(f"{prefix}.attention")
    return tensors


def ring_weights() -> dict[str, Tensor]:
    """All tensors of the one with grouped-query attention."""
    return _weights(_grouped_attention)


def latent_weights() -> dict[str, Tensor]:
    """All tensors of the one with latent attention."""
    return _weights(_latent_attention)
