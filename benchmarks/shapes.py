"""Write a model folder without weights: the layer shapes of Qwen3.5-35B-A3B, a byte tokenizer.

    python benchmarks/shapes.py OUT      # then serve OUT with --load-format dummy

Speed does not depend on what weights are worth, so time to first token of the real architecture can
be measured without them; quality can not. Shapes are those of the model's public config.json. One
ASCII character is one token.
"""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import tiny_model

LAYERS = 40


def text_config() -> dict[str, Any]:
    experts = {
        "num_experts": 256,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }
    linear = {
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
    }
    own = {
        "model_type": "qwen3_5_moe_text",
        "vocab_size": 248_320,
        "hidden_size": 2048,
        "intermediate_size": 2048,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "max_position_embeddings": 262_144,
        "layer_types": [
            "linear_attention",
            "linear_attention",
            "linear_attention",
            "full_attention",
        ]
        * (LAYERS // 4),
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10_000_000,
            "partial_rotary_factor": 0.25,
            "mrope_interleaved": True,
            "mrope_section": [11, 11, 10],
        },
    }
    return tiny_model.text_config() | linear | experts | own


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True)
    tiny_model.write(folder)
    (folder / "model.safetensors").unlink()
    config = tiny_model.config() | {
        "architectures": ["Qwen3_5MoeForConditionalGeneration"],
        "model_type": "qwen3_5_moe",
        "text_config": text_config(),
    }
    config["vision_config"] |= {"model_type": "qwen3_5_moe", "out_hidden_size": 2048}
    (folder / "config.json").write_text(json.dumps(config, indent=1))


if __name__ == "__main__":
    main()
