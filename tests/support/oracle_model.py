"""What every tiny model has, in plain torch, float32: weights, embeddings, norms, MLP, attention.

Reads a model folder. Shares no code with the engine and knows nothing of segments.
"""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class AttentionInputs:
    """Queries, keys before rotation, values, and what the heads' outputs are multiplied by."""

    q: Tensor
    k: Tensor
    v: Tensor
    gate: Tensor


class Memory(Protocol):
    """What a linear layer knows of the tokens before; it changes as tokens are read."""

    def read(self, inputs: Any, rows: slice, positions: Tensor) -> list[Tensor]:
        """Read tokens one after the other; what each then sees [HV, DV]."""
        ...

    def absorb(self, inputs: Any, seam: int, start: int, mode: str) -> None:
        """Take in a cached segment: `inputs` of all its tokens, alone; its start in the prompt."""
        ...


class Model(ABC):
    """Weights of one model and its layers as functions."""

    prefix: ClassVar[str]
    embedding: ClassVar[str]
    norm_offset: ClassVar[float]
    mlp_name: ClassVar[str] = "mlp"

    def __init__(self, folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        self.config: dict[str, Any] = config.get("text_config", config)
        tensors = load_file(folder / "model.safetensors")
        self._tensors = {name: tensor.float() for name, tensor in tensors.items()}

    @property
    @abstractmethod
    def kinds(self) -> list[str]:
        """Each layer's kind."""

    @abstractmethod
    def attention_inputs(self, layer: int, x: Tensor) -> AttentionInputs: ...

    @abstractmethod
    def attention_projection(self, layer: int, x: Tensor) -> Tensor: ...

    @abstractmethod
    def rotated(self, x: Tensor, positions: Tensor) -> Tensor:
        """Heads [t, heads, dim] of an attention layer turned to positions [t]."""

    @abstractmethod
    def linear_inputs(self, layer: int, x: Tensor) -> Any: ...

    @abstractmethod
    def linear_output(self, layer: int, out: Tensor, inputs: Any) -> Tensor: ...

    @abstractmethod
    def memory(self, layer: int) -> Memory:
        """That of a linear layer before the first token."""

    def weight(self, layer: int, name: str) -> Tensor:
        return self._tensors[f"{self.prefix}.layers.{layer}.{name}"]

    def unit(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.config["rms_norm_eps"])

    def norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return self.unit(x) * (self.norm_offset + weight)

    def embed(self, ids: list[int]) -> Tensor:
        return self._tensors[f"{self.prefix}.{self.embedding}.weight"][ids]

    def logits(self, x: Tensor) -> Tensor:
        last = self.norm(x, self._tensors[f"{self.prefix}.norm.weight"])
        return self._tensors["lm_head.weight"] @ last

    def normed(self, layer: int, x: Tensor) -> Tensor:
        return self.norm(x, self.weight(layer, "input_layernorm.weight"))

    def mlp(self, layer: int, x: Tensor) -> Tensor:
        x = self.norm(x, self.weight(layer, "post_attention_layernorm.weight"))
        gate, up, down = (
            self.weight(layer, f"{self.mlp_name}.{name}_proj.weight")
            for name in ("gate", "up", "down")
        )
        return (functional.silu(x @ gate.T) * (x @ up.T)) @ down.T

    def attention_output(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, gate: Tensor
    ) -> Tensor:
        """Attention of rotated queries [t] over rotated keys [s]; `seen` [t, s] is the mask."""
        group = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = torch.einsum("thd,shd->hts", q, k) * q.shape[-1] ** -0.5
        weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        mixed = torch.einsum("hts,shd->thd", weights, v) * gate
        return self.attention_projection(layer, mixed.flatten(1))


def turned_halves(x: Tensor, positions: Tensor, *, dim: int, theta: float) -> Tensor:
    """The first `dim` dimensions turn; pairs are their halves."""
    inverse = theta ** -(torch.arange(0, dim, 2) / dim)
    angle = (positions[:, None] * inverse)[:, None]
    first, second = x[..., : dim // 2], x[..., dim // 2 : dim]
    turned = (
        first * angle.cos() - second * angle.sin(),
        second * angle.cos() + first * angle.sin(),
    )
    return torch.cat([*turned, x[..., dim:]], -1)


def turned_neighbours(x: Tensor, positions: Tensor, *, dim: int, theta: float) -> Tensor:
    """The last `dim` dimensions turn; pairs are neighbours."""
    inverse = theta ** -(torch.arange(0, dim, 2) / dim)
    turn = torch.polar(torch.ones(len(positions), dim // 2), positions[:, None] * inverse)
    pairs = torch.view_as_complex(x[..., -dim:].unflatten(-1, (-1, 2)).contiguous())
    turned = torch.view_as_real(pairs * turn[:, None]).flatten(-2)
    return torch.cat([x[..., :-dim], turned], -1)
