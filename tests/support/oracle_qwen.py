"""Qwen3.5 and Qwen3-Next: gated delta networks and gated full attention, token by token."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from .oracle_model import AttentionInputs, Model, turned_halves


@dataclass(frozen=True)
class LinearInputs:
    """What a linear layer makes of its tokens before the convolution."""

    mixed: Tensor
    z: Tensor
    g: Tensor
    beta: Tensor


def recur(k: Tensor, v: Tensor, g: Tensor, beta: Tensor, rows: Tensor) -> list[Tensor]:
    """The rows of a state [HV, rows, DK] after each token; v holds a value for each row."""
    states = []
    decay, beta = g.exp()[:, :, None, None], beta[:, :, None, None]
    for t in range(k.shape[0]):
        rows = rows * decay[t]
        written = beta[t] * (v[t, :, :, None] - rows @ k[t, :, :, None])
        rows = torch.baddbmm(rows, written, k[t, :, None, :])
        states.append(rows)
    return states


def operator(k: Tensor, v: Tensor, g: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    """End state and transition of some tokens."""
    n_heads, dv, dk = v.shape[1], v.shape[2], k.shape[2]
    rows = torch.cat([torch.zeros(n_heads, dv, dk), torch.eye(dk).expand(n_heads, dk, dk)], 1)
    written = torch.cat([v, torch.zeros(*v.shape[:2], dk)], -1)
    last = recur(k, written, g, beta, rows)[-1]
    return last[:, :dv], last[:, dv:]


class GatedDeltaMemory:
    """State, and the last inputs of the convolution."""

    def __init__(self, model: "Qwen", layer: int) -> None:
        self._model, self._layer = model, layer
        self._history = model.empty_history(layer)
        self._state = model.empty_state()

    def read(self, inputs: LinearInputs, rows: slice, positions: Tensor) -> list[Tensor]:  # noqa: ARG002
        mixed, outs = inputs.mixed[rows], []
        q, k, v = self._model.convolved(self._layer, self._history, mixed)
        for query, state in zip(
            q, recur(k, v, inputs.g[rows], inputs.beta[rows], self._state), strict=True
        ):
            outs.append((state @ query[:, :, None]).squeeze(-1))
            self._state = state
        self._remember(mixed)
        return outs

    def absorb(self, inputs: LinearInputs, seam: int, start: int, mode: str) -> None:  # noqa: ARG002
        none = self._model.empty_history(self._layer)
        _, k, v = self._model.convolved(self._layer, none, inputs.mixed)
        end, transition = operator(*(x[seam:] for x in (k, v, inputs.g, inputs.beta)))
        before = self._state if mode == "addition" else self._state @ transition
        self._state = before + end
        self._remember(inputs.mixed)

    def _remember(self, mixed: Tensor) -> None:
        self._history = torch.cat([self._history, mixed])[-self._history.shape[0] :]


class Qwen(Model):
    """Qwen3.5."""

    prefix = "model.language_model"
    embedding = "embed_tokens"
    norm_offset = 1.0

    @property
    def kinds(self) -> list[str]:
        kinds: list[str] = self.config["layer_types"]
        return kinds

    @property
    def rope(self) -> dict[str, Any]:
        parameters: dict[str, Any] = self.config["rope_parameters"]
        return parameters

    def attention_inputs(self, layer: int, x: Tensor) -> AttentionInputs:
        dim = self.config["head_dim"]

        def project(name: str) -> Tensor:
            weight = self.weight(layer, f"self_attn.{name}_proj.weight")
            return (x @ weight.T).unflatten(-1, (-1, dim))

        q, gate = project("q").unflatten(1, (-1, 2)).unbind(2)
        q = self.norm(q, self.weight(layer, "self_attn.q_norm.weight"))
        k = self.norm(project("k"), self.weight(layer, "self_attn.k_norm.weight"))
        return AttentionInputs(q, k, project("v"), gate.sigmoid())

    def attention_projection(self, layer: int, x: Tensor) -> Tensor:
        return x @ self.weight(layer, "self_attn.o_proj.weight").T

    def rotated(self, x: Tensor, positions: Tensor) -> Tensor:
        dim = int(x.shape[-1] * self.rope["partial_rotary_factor"])
        return turned_halves(x, positions, dim=dim, theta=self.rope["rope_theta"])

    def projections(self, layer: int, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """q, k and v together, then z, b and a, value heads in the order of their key heads."""
        names = ("qkv", "z", "b", "a")
        weights = (self.weight(layer, f"linear_attn.in_proj_{name}.weight") for name in names)
        qkv, z, b, a = (x @ weight.T for weight in weights)
        return qkv, z, b, a

    def linear_inputs(self, layer: int, x: Tensor) -> LinearInputs:
        qkv, z, b, a = self.projections(layer, x)
        rate = self.weight(layer, "linear_attn.A_log").exp()
        g = -rate * functional.softplus(a + self.weight(layer, "linear_attn.dt_bias"))
        z = z.unflatten(-1, (-1, self.config["linear_value_head_dim"]))
        return LinearInputs(qkv, z, g, b.sigmoid())

    def convolved(
        self, layer: int, history: Tensor, mixed: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Normalised queries and keys, one a value head, and values; `history` came before."""
        weight = self.weight(layer, "linear_attn.conv1d.weight").squeeze(1)
        width = weight.shape[1]
        rows = torch.cat([history, mixed])
        taps = torch.stack([rows[i : i + mixed.shape[0]] * weight[:, i] for i in range(width)])
        out = functional.silu(taps.sum(0))
        config = self.config
        key_heads, dk = config["linear_num_key_heads"], config["linear_key_head_dim"]
        value_heads, dv = config["linear_num_value_heads"], config["linear_value_head_dim"]
        q, k, v = out.split([key_heads * dk, key_heads * dk, value_heads * dv], -1)
        group = value_heads // key_heads
        q, k = (_unit(x.unflatten(-1, (-1, dk))).repeat_interleave(group, 1) for x in (q, k))
        return q * dk**-0.5, k, v.unflatten(-1, (-1, dv))

    def memory(self, layer: int) -> GatedDeltaMemory:
        return GatedDeltaMemory(self, layer)

    def empty_history(self, layer: int) -> Tensor:
        channels, _, width = self.weight(layer, "linear_attn.conv1d.weight").shape
        return torch.zeros(width - 1, channels)

    def empty_state(self) -> Tensor:
        dims = ("linear_num_value_heads", "linear_value_head_dim", "linear_key_head_dim")
        return torch.zeros(*(self.config[dim] for dim in dims))

    def linear_output(self, layer: int, out: Tensor, inputs: LinearInputs) -> Tensor:
        out = self.unit(out) * self.weight(layer, "linear_attn.norm.weight")
        out = (out * functional.silu(inputs.z)).flatten(1)
        return out @ self.weight(layer, "linear_attn.out_proj.weight").T


class QwenNext(Qwen):
    """Qwen3-Next: projections are dealt out by key head, and the MLP is the only expert."""

    prefix = "model"
    mlp_name = "mlp.experts.0"

    @property
    def rope(self) -> dict[str, Any]:
        return self.config

    def projections(self, layer: int, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        config = self.config
        key_heads, dk = config["linear_num_key_heads"], config["linear_key_head_dim"]
        group = config["linear_num_value_heads"] // key_heads
        dv = group * config["linear_value_head_dim"]

        def dealt(name: str, sizes: list[int]) -> list[Tensor]:
            mixed = x @ self.weight(layer, f"linear_attn.in_proj_{name}.weight").T
            parts = mixed.unflatten(-1, (key_heads, -1)).split(sizes, -1)
            return [part.flatten(1) for part in parts]

        q, k, v, z = dealt("qkvz", [dk, dk, dv, dv])
        b, a = dealt("ba", [group, group])
        return torch.cat([q, k, v], -1), z, b, a


def _unit(x: Tensor) -> Tensor:
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)
