"""What a prompt with segments must be answered, built directly from the definition.

A plain forward with explicit states and masks; greedy. Holds no cache: every cached segment is
computed alone, from position 0 and a zero state, each time it occurs.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from .oracle_bailing import Bailing, Ring
from .oracle_model import Memory, Model
from .oracle_qwen import Qwen, QwenNext

Mode = Literal["addition", "transition", "transition_rope", "transition_rope_recompute"]
TAIL = 3
MODELS: dict[str, type[Model]] = {
    "Qwen3_5ForConditionalGeneration": Qwen,
    "Qwen3NextForCausalLM": QwenNext,
    "BailingMoeLinearV2ForCausalLM": Ring,
    "BailingMoeV2_5ForCausalLM": Bailing,
}


def load(folder: Path) -> Model:
    """The model in a folder that `examples/tiny_model.py` wrote."""
    (architecture,) = json.loads((folder / "config.json").read_text())["architectures"]
    return MODELS[architecture](folder)


@dataclass(frozen=True)
class Piece:
    """One piece of a prompt: its first `computed` tokens in place, the rest from the cache."""

    ids: tuple[int, ...]
    start: int
    computed: int

    @property
    def is_cached(self) -> bool:
        return self.computed < len(self.ids)


def seam_width(n_tokens: int, mode: Mode, seam: float) -> int:
    """How many tokens of a cached segment are computed again: 0 < seam <= 1 is a fraction."""
    if mode != "transition_rope_recompute":
        return 0
    wanted = round(seam * n_tokens) if 0 < seam <= 1 else int(seam)
    return min(wanted, n_tokens // 2)


def plan(
    pieces: Sequence[Sequence[int]],
    *,
    mode: Mode,
    seam: float,
    min_tokens: int,
    recompute: frozenset[int] | Literal["all"] = frozenset(),
) -> list[Piece]:
    """Where each piece stands and how much of it is computed in place; the last is the query."""
    planned, start = [], 0
    for index, ids in enumerate(pieces):
        length = len(ids)
        width = seam_width(length, mode, seam)
        in_place = (
            index == len(pieces) - 1
            or recompute == "all"
            or index in recompute
            or length - width < TAIL
            or length < min_tokens
        )
        planned.append(Piece(tuple(ids), start, length if in_place else width))
        start += length
    return planned


@dataclass
class Alone:
    """A segment computed by itself: layer by layer, what of it can be used elsewhere."""

    keys: dict[int, Tensor] = field(default_factory=dict)
    values: dict[int, Tensor] = field(default_factory=dict)
    linear: dict[int, Any] = field(default_factory=dict)


def alone(model: Model, ids: Sequence[int]) -> Alone:
    """The segment at positions 0 .. L-1, nothing before it."""
    kept = Alone()
    forward(model, Stream(model), [Piece(tuple(ids), 0, len(ids))], "transition", keep=kept)
    return kept


class Stream:
    """The state of one sequence: every key with its position, every linear layer's state."""

    def __init__(self, model: Model) -> None:
        layers = range(len(model.kinds))
        linear = [layer for layer in layers if model.kinds[layer] == "linear_attention"]
        self.keys: dict[int, list[Tensor]] = {layer: [] for layer in layers}
        self.values: dict[int, list[Tensor]] = {layer: [] for layer in layers}
        self.positions: dict[int, list[Tensor]] = {layer: [] for layer in layers}
        self.memory: dict[int, Memory] = {layer: model.memory(layer) for layer in linear}
        self.length = 0

    def add(self, layer: int, keys: Tensor, values: Tensor, positions: Tensor) -> None:
        self.keys[layer].append(keys)
        self.values[layer].append(values)
        self.positions[layer].append(positions)


def _span(start: int, end: int) -> Tensor:
    return torch.arange(start, end)


def _attend(
    model: Model,
    layer: int,
    x: Tensor,
    stream: Stream,
    pieces: Sequence[Piece],
    segments: Sequence[Alone | None],
    mode: Mode,
    keep: Alone | None,
) -> Tensor:
    inputs = model.attention_inputs(layer, x)
    positions = torch.cat([_span(p.start, p.start + p.computed) for p in pieces])
    if keep:
        keep.keys[layer], keep.values[layer] = inputs.k, inputs.v
    stream.add(layer, model.rotated(inputs.k, positions), inputs.v, positions)
    for piece, segment in zip(pieces, segments, strict=True):
        if segment:
            inside = _span(piece.computed, len(piece.ids))
            true = inside + piece.start
            keys = segment.keys[layer][piece.computed :]
            turned = model.rotated(keys, true if "rope" in mode else inside)
            stream.add(layer, turned, segment.values[layer][piece.computed :], true)
    keys, values = torch.cat(stream.keys[layer]), torch.cat(stream.values[layer])
    seen = torch.cat(stream.positions[layer]) <= positions[:, None]
    q = model.rotated(inputs.q, positions)
    return model.attention_output(layer, q, keys, values, seen, inputs.gate)


def _recall(
    model: Model,
    layer: int,
    x: Tensor,
    stream: Stream,
    pieces: Sequence[Piece],
    segments: Sequence[Alone | None],
    mode: Mode,
    keep: Alone | None,
) -> Tensor:
    inputs, memory = model.linear_inputs(layer, x), stream.memory[layer]
    if keep:
        keep.linear[layer] = inputs
    outs: list[Tensor] = []
    for piece, segment in zip(pieces, segments, strict=True):
        rows = slice(len(outs), len(outs) + piece.computed)
        outs += memory.read(inputs, rows, _span(piece.start, piece.start + piece.computed))
        if segment:
            memory.absorb(segment.linear[layer], piece.computed, piece.start, mode)
    return model.linear_output(layer, torch.stack(outs), inputs)


def forward(
    model: Model,
    stream: Stream,
    pieces: Sequence[Piece],
    mode: Mode,
    *,
    keep: Alone | None = None,
) -> Tensor:
    """Logits after the last piece; the stream then stands behind it."""
    segments = [alone(model, piece.ids) if piece.is_cached else None for piece in pieces]
    x = model.embed([token for piece in pieces for token in piece.ids[: piece.computed]])
    for layer, kind in enumerate(model.kinds):
        mix = _recall if kind == "linear_attention" else _attend
        normed = model.normed(layer, x)
        x = x + mix(model, layer, normed, stream, pieces, segments, mode, keep)
        x = x + model.mlp(layer, x)
    stream.length += sum(len(piece.ids) for piece in pieces)
    return model.logits(x[-1])


def generate(
    model: Model,
    pieces: Sequence[Sequence[int]],
    *,
    mode: Mode = "transition_rope_recompute",
    seam: float = 8,
    min_tokens: int = 6,
    recompute: frozenset[int] | Literal["all"] = frozenset(),
    n_tokens: int = 16,
) -> list[int]:
    """The greedy answer to head, bodies and query, every segment found in the cache.

    Args:
        model: weights.
        pieces: token ids of head, bodies and query; one piece alone is a plain prompt.
        mode: how cached segments are used.
        seam: tokens, or a fraction where it is at most 1.
        min_tokens: shorter segments are computed in place.
        recompute: indices of segments to compute in place, or all of them.
        n_tokens: length of the answer.
    """
    planned = plan(pieces, mode=mode, seam=seam, min_tokens=min_tokens, recompute=recompute)
    stream, answer = Stream(model), []
    while True:
        answer.append(int(forward(model, stream, planned, mode).argmax()))
        if len(answer) == n_tokens:
            return answer
        planned = [Piece((answer[-1],), stream.length, 1)]


def full(model: Model, ids: Sequence[int], n_tokens: int) -> list[int]:
    """The greedy answer to a plain prompt."""
    return generate(model, [ids], n_tokens=n_tokens)
