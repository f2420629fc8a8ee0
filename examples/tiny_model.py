"""Write a tiny random hybrid model that stock SGLang serves without an accelerator.

    python examples/tiny_model.py OUT [--family qwen3.5]

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tiny import bailing, qwen3_5, qwen3_next
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

POSITIONS = 32_768
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
END_OF_TEXT, IM_END = 256, 258

CHAT_TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{% if message.content is string %}{{ message.content }}
{%- else %}{% for part in message.content %}{{ part.text }}{% endfor %}{% endif %}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif -%}
"""


@dataclass(frozen=True)
class Family:
    """A model's config.json and its tensors by their names in a checkpoint."""

    config: Callable[[], dict[str, Any]]
    weights: Callable[[], dict[str, torch.Tensor]]


FAMILIES: Mapping[str, Family] = {
    "qwen3.5": Family(qwen3_5.config, qwen3_5.weights),
    "qwen3-next": Family(qwen3_next.config, qwen3_next.weights),
    "ring": Family(bailing.ring_config, bailing.ring_weights),
    "bailing-v2.5": Family(bailing.latent_config, bailing.latent_weights),
}
DEFAULT = "qwen3.5"


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


def write(folder: Path, family: str = DEFAULT) -> None:
    """All files of the model into an existing empty folder."""
    _write_json(folder / "config.json", FAMILIES[family].config())
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
    made = FAMILIES[family].weights().items()
    tensors = {name: tensor.to(torch.bfloat16).contiguous() for name, tensor in made}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def digest(folder: Path) -> str:
    """SHA-256 over the names and contents of the files."""
    sha = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        sha.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return sha.hexdigest()


def publish(out: Path, family: str = DEFAULT) -> None:
    """Write beside `out` and rename, so that a reader sees a whole model or none."""
    out.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        write(work, family)
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
    parser.add_argument("--family", choices=FAMILIES, default=DEFAULT)
    arguments = parser.parse_args()
    out = arguments.out
    publish(out, arguments.family)
    size = sum(path.stat().st_size for path in out.iterdir())
    print(f"{out}: {size / 1e6:.1f} MB", file=sys.stderr)
    print(f"sha256:{digest(out)}")


if __name__ == "__main__":
    main()
