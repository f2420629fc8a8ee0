"""Ring-linear-2.0 and Bailing 2.5: Lightning attention, with grouped-query or latent attention."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .oracle_model import AttentionInputs, Model, turned_halves, turned_neighbours


@dataclass(frozen=True)
class LinearInputs:
    """Queries and keys before rotation [t, H, D], values, and the output's gate."""

    q: Tensor
    k: Tensor
    v: Tensor
    gate: Tensor


def decay_rates(n_heads: int, layer: int, n_layers: int) -> Tensor:
    """How fast each head forgets: slower from head to head, and the deeper a layer lies."""
    assert math.log2(n_heads).is_integer()
    heads = 2 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)
    return heads * (1 - layer / (n_layers - 1) + 1e-5)


class LightningMemory:
    """One matrix a head, [H, DK, DV]; keys enter it at the positions where they stand."""

    def __init__(self, model: "Ring", layer: int) -> None:
        n_heads, dim = model.config["num_attention_heads"], model.config["head_dim"]
        self._model = model
        self._keep = (-decay_rates(n_heads, layer, len(model.kinds))).exp()[:, None, None]
        self._state = torch.zeros(n_heads, dim, dim)

    def read(self, inputs: LinearInputs, rows: slice, positions: Tensor) -> list[Tensor]:
        q = self._model.turned(inputs.q[rows], positions) * inputs.q.shape[-1] ** -0.5
        k, outs = self._model.turned(inputs.k[rows], positions), []
        for query, key, value in zip(q, k, inputs.v[rows], strict=True):
            self._write(key, value)
            outs.append((query[:, None] @ self._state).squeeze(1))
        return outs

    def absorb(self, inputs: LinearInputs, seam: int, start: int, mode: str) -> None:
        """Write the interior's tokens at the positions that the mode gives them."""
        before = self._state
        inside = torch.arange(seam, len(inputs.k))
        positions = inside + start if "rope" in mode else inside
        if mode == "addition":
            self._state = torch.zeros_like(before)
        keys = self._model.turned(inputs.k[seam:], positions)
        for key, value in zip(keys, inputs.v[seam:], strict=True):
            self._write(key, value)
        if mode == "addition":
            self._state = self._state + before

    def _write(self, key: Tensor, value: Tensor) -> None:
        self._state = self._keep * self._state + key[:, :, None] * value[:, None, :]


class Ring(Model):
    """Ring-linear-2.0."""

    prefix = "model"
    embedding = "word_embeddings"
    norm_offset = 0.0

    @property
    def kinds(self) -> list[str]:
        group = self.config["layer_group_size"]
        kinds = ("full_attention", "linear_attention")
        return [kinds[(i + 1) % group > 0] for i in range(self.config["num_hidden_layers"])]

    def _projected(self, layer: int, name: str, x: Tensor) -> Tensor:
        return x @ self.weight(layer, f"attention.{name}.weight").T

    def _heads(self, layer: int, x: Tensor, n_kv_heads: int) -> tuple[Tensor, Tensor, Tensor]:
        n_heads, dim = self.config["num_attention_heads"], self.config["head_dim"]
        heads = self._projected(layer, "query_key_value", x).unflatten(-1, (-1, dim))
        q, k, v = heads.split([n_heads, n_kv_heads, n_kv_heads], 1)
        q = self.norm(q, self.weight(layer, "attention.query_layernorm.weight"))
        return q, self.norm(k, self.weight(layer, "attention.key_layernorm.weight")), v

    def turned(self, x: Tensor, positions: Tensor) -> Tensor:
        """Heads of a linear layer at their positions."""
        dim = int(self.config["head_dim"] * self.config["partial_rotary_factor"])
        return turned_halves(x, positions, dim=dim, theta=self.config["rope_theta"])

    def attention_inputs(self, layer: int, x: Tensor) -> AttentionInputs:
        q, k, v = self._heads(layer, x, self.config["num_key_value_heads"])
        return AttentionInputs(q, k, v, torch.ones(()))

    def attention_projection(self, layer: int, x: Tensor) -> Tensor:
        return self._projected(layer, "dense", x)

    def rotated(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.turned(x, positions)

    def linear_inputs(self, layer: int, x: Tensor) -> LinearInputs:
        heads = self._heads(layer, x, self.config["num_attention_heads"])
        return LinearInputs(*heads, self._projected(layer, "g_proj", x).sigmoid())

    def memory(self, layer: int) -> LightningMemory:
        return LightningMemory(self, layer)

    def linear_output(self, layer: int, out: Tensor, inputs: LinearInputs) -> Tensor:
        groups = out.flatten(1).unflatten(-1, (self.config["group_norm_size"], -1))
        out = self.unit(groups).flatten(1) * self.weight(layer, "attention.g_norm.weight")
        return self._projected(layer, "dense", out * inputs.gate)


class Bailing(Ring):
    """Bailing 2.5: keys and values of full attention come from one latent vector a token."""

    def attention_inputs(self, layer: int, x: Tensor) -> AttentionInputs:
        config = self.config
        nope, rope = config["qk_nope_head_dim"], config["qk_rope_head_dim"]
        n_heads, rank = config["num_attention_heads"], config["kv_lora_rank"]
        q = self._projected(layer, "q_proj", x).unflatten(-1, (n_heads, -1))
        latent, turning = self._projected(layer, "kv_a_proj_with_mqa", x).split([rank, rope], -1)
        latent = self.norm(latent, self.weight(layer, "attention.kv_a_layernorm.weight"))
        heads = self._projected(layer, "kv_b_proj", latent).unflatten(-1, (n_heads, -1))
        k, v = heads.split([nope, config["v_head_dim"]], -1)
        k = torch.cat([k, turning[:, None].expand(-1, n_heads, -1)], -1)
        return AttentionInputs(q, k, v, torch.ones(()))

    def rotated(self, x: Tensor, positions: Tensor) -> Tensor:
        dim, theta = self.config["qk_rope_head_dim"], self.config["rope_theta"]
        return turned_neighbours(x, positions, dim=dim, theta=theta)
