"""Write a model folder without weights: the layer shapes of a public model, a byte tokenizer.

    python benchmarks/shapes.py OUT [--model qwen35b]   # then serve OUT with --load-format dummy

Speed does not depend on what weights are worth, so time to first token of the real architecture can
be measured without them; quality can not. Shapes are those of public models, and have as many
parameters as their makers state. One ASCII character is one token.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import tiny_model
from tiny import bailing, qwen3_5

HYBRID = (*["linear_attention"] * 3, "full_attention")


def qwen(
    *, layers: int, hidden: int, heads: int, value_heads: int, expert_hidden: int
) -> dict[str, Any]:
    """config.json of a Qwen3.5 mixture of experts."""
    experts = {
        "num_experts": 256,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": expert_hidden,
        "shared_expert_intermediate_size": expert_hidden,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }
    linear = {
        "linear_num_key_heads": 16,
        "linear_num_value_heads": value_heads,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
    }
    own = {
        "model_type": "qwen3_5_moe_text",
        "vocab_size": 248_320,
        "hidden_size": hidden,
        "intermediate_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "max_position_embeddings": 262_144,
        "layer_types": list(HYBRID) * (layers // len(HYBRID)),
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10_000_000,
            "partial_rotary_factor": 0.25,
            "mrope_interleaved": True,
            "mrope_section": [11, 11, 10],
        },
    }
    config = qwen3_5.config() | {
        "architectures": ["Qwen3_5MoeForConditionalGeneration"],
        "model_type": "qwen3_5_moe",
        "text_config": qwen3_5.text_config() | linear | experts | own,
    }
    config["vision_config"] |= {"model_type": "qwen3_5_moe", "out_hidden_size": hidden}
    return config


def ring(
    *,
    layers: int,
    hidden: int,
    heads: int,
    group: int,
    norm_groups: int,
    mlp: int,
    expert_hidden: int,
) -> dict[str, Any]:
    """config.json of a Ring-linear-2.0."""
    return bailing.ring_config() | {
        "vocab_size": 157_184,
        "hidden_size": hidden,
        "intermediate_size": mlp,
        "moe_intermediate_size": expert_hidden,
        "moe_shared_expert_intermediate_size": expert_hidden,
        "num_hidden_layers": layers,
        "layer_group_size": group,
        "group_norm_size": norm_groups,
        "num_attention_heads": heads,
        "num_key_value_heads": 4,
        "max_position_embeddings": 131_072,
        "rope_theta": 600_000,
        "num_experts": 256,
        "num_shared_experts": 1,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 1,
        "moe_router_enable_expert_bias": True,
        "score_function": "sigmoid",
        "routed_scaling_factor": 2.5,
        "router_dtype": "fp32",
        "n_group": 8,
        "topk_group": 4,
    }


MODELS: dict[str, Callable[[], dict[str, Any]]] = {
    "qwen35b": lambda: qwen(layers=40, hidden=2048, heads=16, value_heads=32, expert_hidden=512),
    "qwen122b": lambda: qwen(layers=48, hidden=3072, heads=32, value_heads=64, expert_hidden=1024),
    "ring_mini": lambda: ring(
        layers=20, hidden=2048, heads=16, group=5, norm_groups=4, mlp=5120, expert_hidden=512
    ),
    "ring_flash": lambda: ring(
        layers=32, hidden=4096, heads=32, group=8, norm_groups=8, mlp=9216, expert_hidden=1024
    ),
}


def write(folder: Path, model: str) -> None:
    """The files of a model into a folder that is not there yet."""
    folder.mkdir(parents=True)
    tiny_model.write(folder)
    (folder / "model.safetensors").unlink()
    (folder / "config.json").write_text(json.dumps(MODELS[model](), indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--model", choices=MODELS, default="qwen35b")
    arguments = parser.parse_args()
    write(arguments.out, arguments.model)


if __name__ == "__main__":
    main()
