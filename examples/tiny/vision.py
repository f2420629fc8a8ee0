"""The vision tower that the Qwen3.5 architecture has and text never uses."""

from collections.abc import Iterator
from typing import Any

import torch

from .noise import normal, projection

HIDDEN, MLP, PATCH, MERGE, POSITIONS = 32, 64, 16, 2, 64


def config(out: int) -> dict[str, Any]:
    """Its part of config.json; `out` is the language model's width."""
    return {
        "model_type": "qwen3_5_vision",
        "depth": 1,
        "hidden_size": HIDDEN,
        "intermediate_size": MLP,
        "num_heads": 2,
        "out_hidden_size": out,
        "patch_size": PATCH,
        "spatial_merge_size": MERGE,
        "temporal_patch_size": 2,
        "in_channels": 3,
        "num_position_embeddings": POSITIONS,
        "deepstack_visual_indexes": [],
    }


def weights(out: int) -> Iterator[tuple[str, torch.Tensor]]:
    """All its tensors by their names in a checkpoint."""
    hidden, merged = HIDDEN, HIDDEN * MERGE**2
    linear = {
        "blocks.0.attn.qkv": (3 * hidden, hidden),
        "blocks.0.attn.proj": (hidden, hidden),
        "blocks.0.mlp.linear_fc1": (MLP, hidden),
        "blocks.0.mlp.linear_fc2": (hidden, MLP),
        "merger.linear_fc1": (merged, merged),
        "merger.linear_fc2": (out, merged),
    }
    for part, (rows, columns) in linear.items():
        name = f"model.visual.{part}"
        yield f"{name}.weight", projection(name, rows, columns)
        yield f"{name}.bias", torch.zeros(rows)
    for part in ("blocks.0.norm1", "blocks.0.norm2", "merger.norm"):
        yield f"model.visual.{part}.weight", torch.ones(hidden)
        yield f"model.visual.{part}.bias", torch.zeros(hidden)
    name = "model.visual.pos_embed.weight"
    yield name, normal(name, (POSITIONS, hidden), std=0.02)
    name = "model.visual.patch_embed.proj"
    yield f"{name}.weight", normal(name, (hidden, 3, 2, PATCH, PATCH), std=0.02)
    yield f"{name}.bias", torch.zeros(hidden)
