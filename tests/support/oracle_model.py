"""The parts of a Qwen3.5 text model in plain torch, float32, token by token where it can be.

Reads a model folder. Shares no code with the engine and knows nothing of segments.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class LinearInputs:
    """What a linear layer makes of its tokens before the convolution."""

    mixed: Tensor
    z: Tensor
    g: Tensor
    beta: Tensor


@dataclass(frozen=True)
class AttentionInputs:
    """Queries, keys before rotation, values and output gates of an attention layer."""

    q: Tensor
    k: Tensor
    v: Tensor
    gate: Tensor


def _unit(x: Tensor) -> Tensor:
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)


class Model:
    """Weights of one model and its layers as functions."""

    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "config.json").read_text())["text_config"]
        tensors = load_file(folder / "model.safetensors")
        self._tensors = {name: tensor.float() for name, tensor in tensors.items()}
        self.kinds: list[str] = self.config["layer_types"]

    def _of(self, layer: int, name: str) -> Tensor:
        return self._tensors[f"model.language_model.layers.{layer}.{name}.weight"]

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        size = x.pow(2).mean(-1, keepdim=True)
        return x * torch.rsqrt(size + self.config["rms_norm_eps"]) * (1 + weight)

    def embed(self, ids: list[int]) -> Tensor:
        return self._tensors["model.language_model.embed_tokens.weight"][ids]

    def logits(self, x: Tensor) -> Tensor:
        return self._tensors["lm_head.weight"] @ self._norm(
            x, self._tensors["model.language_model.norm.weight"]
        )

    def normed(self, layer: int, x: Tensor) -> Tensor:
        return self._norm(x, self._of(layer, "input_layernorm"))

    def mlp(self, layer: int, x: Tensor) -> Tensor:
        x = self._norm(x, self._of(layer, "post_attention_layernorm"))
        gate, up = x @ self._of(layer, "mlp.gate_proj").T, x @ self._of(layer, "mlp.up_proj").T
        return (functional.silu(gate) * up) @ self._of(layer, "mlp.down_proj").T

    def attention_inputs(self, layer: int, x: Tensor) -> AttentionInputs:
        dim = self.config["head_dim"]

        def project(name: str) -> Tensor:
            return (x @ self._of(layer, f"self_attn.{name}_proj").T).unflatten(-1, (-1, dim))

        q, gate = project("q").unflatten(1, (-1, 2)).unbind(2)
        q = self._norm(q, self._of(layer, "self_attn.q_norm"))
        k = self._norm(project("k"), self._of(layer, "self_attn.k_norm"))
        return AttentionInputs(q, k, project("v"), gate.sigmoid())

    def rotated(self, x: Tensor, positions: Tensor) -> Tensor:
        """Heads [t, heads, dim] turned to positions [t]."""
        rope = self.config["rope_parameters"]
        dim = int(x.shape[-1] * rope["partial_rotary_factor"])
        inverse = rope["rope_theta"] ** -(torch.arange(0, dim, 2) / dim)
        angle = (positions[:, None] * inverse)[:, None]
        first, second = x[..., : dim // 2], x[..., dim // 2 : dim]
        turned = (
            first * angle.cos() - second * angle.sin(),
            second * angle.cos() + first * angle.sin(),
        )
        return torch.cat([*turned, x[..., dim:]], -1)

    def attention_output(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, gate: Tensor
    ) -> Tensor:
        """Attention of rotated queries [t] over rotated keys [s]; `seen` [t, s] is the mask."""
        group = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = torch.einsum("thd,shd->hts", q, k) * q.shape[-1] ** -0.5
        weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        mixed = torch.einsum("hts,shd->thd", weights, v) * gate
        return mixed.flatten(1) @ self._of(layer, "self_attn.o_proj").T

    def linear_inputs(self, layer: int, x: Tensor) -> LinearInputs:
        prefix = f"model.language_model.layers.{layer}.linear_attn"

        def project(name: str) -> Tensor:
            return x @ self._of(layer, f"linear_attn.in_proj_{name}").T

        rate = self._tensors[f"{prefix}.A_log"].exp()
        g = -rate * functional.softplus(project("a") + self._tensors[f"{prefix}.dt_bias"])
        z = project("z").unflatten(-1, (-1, self.config["linear_value_head_dim"]))
        return LinearInputs(project("qkv"), z, g, project("b").sigmoid())

    def convolved(
        self, layer: int, history: Tensor, mixed: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Normalised queries and keys, one a value head, and values; `history` came before."""
        weight = self._of(layer, "linear_attn.conv1d").squeeze(1)
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

    def empty_history(self, layer: int) -> Tensor:
        channels, _, width = self._of(layer, "linear_attn.conv1d").shape
        return torch.zeros(width - 1, channels)

    def empty_state(self) -> Tensor:
        config = self.config
        dims = ("linear_num_value_heads", "linear_value_head_dim", "linear_key_head_dim")
        return torch.zeros(*(config[dim] for dim in dims))

    def linear_output(self, layer: int, out: Tensor, z: Tensor) -> Tensor:
        size = out.pow(2).mean(-1, keepdim=True)
        out = out * torch.rsqrt(size + self.config["rms_norm_eps"])
        out = out * self._of(layer, "linear_attn.norm") * functional.silu(z)
        return out.flatten(1) @ self._of(layer, "linear_attn.out_proj").T


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
