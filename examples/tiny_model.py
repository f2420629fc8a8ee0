"""Write a tiny random hybrid of the Qwen3.5 architecture that stock SGLang and transformers serve.

    python examples/tiny_model.py OUT

Made for tests and demos on machines without an accelerator: it says nothing sensible, but every
token of its prompt matters to what it says. A trained model of the same shape may take its place:
only the values in `weights` differ. Downloads nothing.

Every weight is a function of its name alone, made of integers and exactly rounded operations, so
weights are the same bits on every machine and with every version of torch. The digest of all files
is printed; beside the weights it depends only on how safetensors and tokenizers lay out theirs.

A token id below 256 is a byte: a text of n ASCII characters is n tokens.
"""

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

HIDDEN, MLP, VOCAB, POSITIONS = 128, 256, 512, 32_768
HEADS, KV_HEADS, HEAD_DIM, ROTARY_DIM = 4, 2, 64, 16
K_HEADS, V_HEADS, LINEAR_DIM, CONV_WIDTH = 2, 4, 64, 4
LAYERS = (*["linear_attention"] * 3, "full_attention") * 2
KEY_DIM, VALUE_DIM = K_HEADS * LINEAR_DIM, V_HEADS * LINEAR_DIM
VISION_HIDDEN, VISION_MLP, PATCH, MERGE, VISION_POSITIONS = 32, 64, 16, 2, 64
EPS = 1e-6

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
END_OF_TEXT, IM_END = 256, 258
PRINTABLE = (10, *range(32, 127))

CHAT_TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{% if message.content is string %}{{ message.content }}
{%- else %}{% for part in message.content %}{{ part.text }}{% endfor %}{% endif %}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif -%}
"""


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
        "eos_token_id": IM_END,
        "dtype": "bfloat16",
    }


def config() -> dict[str, Any]:
    """config.json; the vision tower is there because the architecture has one."""
    return {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "model_type": "qwen3_5",
        "text_config": text_config(),
        "vision_config": {
            "model_type": "qwen3_5_vision",
            "depth": 1,
            "hidden_size": VISION_HIDDEN,
            "intermediate_size": VISION_MLP,
            "num_heads": 2,
            "out_hidden_size": HIDDEN,
            "patch_size": PATCH,
            "spatial_merge_size": MERGE,
            "temporal_patch_size": 2,
            "in_channels": 3,
            "num_position_embeddings": VISION_POSITIONS,
            "deepstack_visual_indexes": [],
        },
        "image_token_id": 500,
        "video_token_id": 501,
        "vision_start_token_id": 502,
        "vision_end_token_id": 503,
        "tie_word_embeddings": False,
        "dtype": "bfloat16",
    }


def _stream(name: str, count: int) -> torch.Tensor:
    """`count` integers, uniform over int16, that depend on nothing but `name`."""
    raw = bytearray(hashlib.shake_256(name.encode()).digest(2 * count))
    return torch.frombuffer(raw, dtype=torch.int16).to(torch.float32)


def normal(name: str, shape: tuple[int, ...], *, std: float) -> torch.Tensor:
    """Nearly normal values: the sum of four uniform integers, scaled."""
    count = int(torch.tensor(shape).prod())
    total = _stream(name, 4 * count).reshape(4, count).sum(0)
    return (total * (std / 37_837.2)).reshape(shape)


def spread(name: str, count: int, *, low: float, high: float) -> torch.Tensor:
    """Uniform values between `low` and `high`."""
    return _stream(name, count) * ((high - low) / 65_536) + (low + high) / 2


def projection(name: str, rows: int, columns: int, *, gain: float = 1.0) -> torch.Tensor:
    """A matrix that keeps the size of what it multiplies, times `gain`."""
    return normal(name, (rows, columns), std=gain * columns**-0.5)


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


def _layer(index: int) -> Iterator[tuple[str, torch.Tensor]]:
    prefix = f"model.language_model.layers.{index}"
    for part in ("input_layernorm", "post_attention_layernorm"):
        name = f"{prefix}.{part}.weight"
        yield name, normal(name, (HIDDEN,), std=0.1)
    if LAYERS[index] == "linear_attention":
        yield from _linear_attention(f"{prefix}.linear_attn")
    else:
        yield from _full_attention(f"{prefix}.self_attn")
    for part, rows, columns in (
        ("gate", MLP, HIDDEN),
        ("up", MLP, HIDDEN),
        ("down", HIDDEN, MLP),
    ):
        name = f"{prefix}.mlp.{part}_proj.weight"
        yield name, projection(name, rows, columns)


def _vision() -> Iterator[tuple[str, torch.Tensor]]:
    hidden, merged = VISION_HIDDEN, VISION_HIDDEN * MERGE**2
    linear = {
        "blocks.0.attn.qkv": (3 * hidden, hidden),
        "blocks.0.attn.proj": (hidden, hidden),
        "blocks.0.mlp.linear_fc1": (VISION_MLP, hidden),
        "blocks.0.mlp.linear_fc2": (hidden, VISION_MLP),
        "merger.linear_fc1": (merged, merged),
        "merger.linear_fc2": (HIDDEN, merged),
    }
    for part, (rows, columns) in linear.items():
        name = f"model.visual.{part}"
        yield f"{name}.weight", projection(name, rows, columns)
        yield f"{name}.bias", torch.zeros(rows)
    for part in ("blocks.0.norm1", "blocks.0.norm2", "merger.norm"):
        yield f"model.visual.{part}.weight", torch.ones(hidden)
        yield f"model.visual.{part}.bias", torch.zeros(hidden)
    name = "model.visual.pos_embed.weight"
    yield name, normal(name, (VISION_POSITIONS, hidden), std=0.02)
    name = "model.visual.patch_embed.proj"
    yield f"{name}.weight", normal(name, (hidden, 3, 2, PATCH, PATCH), std=0.02)
    yield f"{name}.bias", torch.zeros(hidden)


def weights() -> dict[str, torch.Tensor]:
    """All tensors by their names in a checkpoint, in bfloat16."""
    embed, head = "model.language_model.embed_tokens.weight", "lm_head.weight"
    tensors = {embed: normal(embed, (VOCAB, HIDDEN), std=1.0)}
    for index in range(len(LAYERS)):
        tensors.update(_layer(index))
    name = "model.language_model.norm.weight"
    tensors[name] = normal(name, (HIDDEN,), std=0.1)
    # Rows of zeros never win: answers are printable and as long as was asked for.
    tensors[head] = torch.zeros(VOCAB, HIDDEN)
    tensors[head][list(PRINTABLE)] = projection(head, len(PRINTABLE), HIDDEN, gain=4.0)
    tensors.update(_vision())
    return {name: tensor.to(torch.bfloat16).contiguous() for name, tensor in tensors.items()}


def tokenizer() -> Tokenizer:
    """One token a byte, its id the byte's value, and the three special tokens."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    alphabet = dict(zip(shown, map(chr, shown), strict=True))
    alphabet |= {byte: chr(256 + place) for place, byte in enumerate(hidden)}
    vocab = {alphabet[byte]: byte for byte in range(256)}
    built = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    built.add_special_tokens(list(SPECIAL))
    return built


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


def write(folder: Path) -> None:
    """All files of the model into an existing empty folder."""
    _write_json(folder / "config.json", config())
    _write_json(
        folder / "generation_config.json",
        {"eos_token_id": [END_OF_TEXT, IM_END], "pad_token_id": END_OF_TEXT, "do_sample": False},
    )
    tokenizer().save(str(folder / "tokenizer.json"))
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "model_max_length": POSITIONS,
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
    )
    save_file(weights(), folder / "model.safetensors", metadata={"format": "pt"})


def digest(folder: Path) -> str:
    """SHA-256 over the names and contents of the files."""
    sha = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        sha.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return sha.hexdigest()


def publish(out: Path) -> None:
    """Write beside `out` and rename, so that a reader sees a whole model or none."""
    out.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        write(work)
        work.chmod(0o755)
        for path in work.iterdir():
            path.chmod(0o644)
        if out.exists():
            shutil.rmtree(out)
        work.rename(out)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def main() -> None:
    """Write the model to the folder named on the command line and print its digest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT", help="folder to write; replaced if there")
    out = parser.parse_args().out
    publish(out)
    size = sum(path.stat().st_size for path in out.iterdir())
    print(f"{out}: {size / 1e6:.1f} MB", file=sys.stderr)
    print(f"sha256:{digest(out)}")


if __name__ == "__main__":
    main()
