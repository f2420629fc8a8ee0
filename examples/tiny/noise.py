"""Weights that are a function of their name alone, the same bits on every machine.

Made of integers and exactly rounded operations. Knows no architecture.
"""

import hashlib

import torch

VOCAB = 512
PRINTABLE = (10, *range(32, 127))


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


def decoder(prefix: str, hidden: int, mlp: int, *, gemma: bool) -> dict[str, torch.Tensor]:
    """A layer's norms and its gated MLP; `gemma` norms multiply by one more than their weight."""
    tensors = {}
    for part in ("input_layernorm", "post_attention_layernorm"):
        name = f"{prefix}.{part}.weight"
        tensors[name] = (0 if gemma else 1) + normal(name, (hidden,), std=0.1)
    for part, rows, columns in (("gate", mlp, hidden), ("up", mlp, hidden), ("down", hidden, mlp)):
        name = f"{prefix}.mlp.{part}_proj.weight"
        tensors[name] = projection(name, rows, columns)
    return tensors


def vocabulary(embed: str, norm: str, hidden: int, *, gemma: bool) -> dict[str, torch.Tensor]:
    """Embeddings, the last norm and the head, whose words are printable ASCII only."""
    head = "lm_head.weight"
    tensors = {embed: normal(embed, (VOCAB, hidden), std=1.0)}
    tensors[norm] = (0 if gemma else 1) + normal(norm, (hidden,), std=0.1)
    # Rows of zeros never win: answers are printable and as long as was asked for.
    tensors[head] = torch.zeros(VOCAB, hidden)
    tensors[head][list(PRINTABLE)] = projection(head, len(PRINTABLE), hidden, gain=4.0)
    return tensors
