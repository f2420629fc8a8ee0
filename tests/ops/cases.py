"""Inputs of the operations, and buffers whose spare rows are not numbers."""

from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from hypic_engine.ops.runs import Runs

LENGTHS = (1, 2, 3, 63, 64, 65, 1000)


@dataclass(frozen=True)
class Shape:
    key_heads: int = 2
    value_heads: int = 4
    dk: int = 32
    dv: int = 48

    def __str__(self) -> str:
        return f"{self.key_heads}x{self.dk}-{self.value_heads}x{self.dv}"


def rule(n_tokens: int, shape: Shape, *, forget: float = 1.0, seed: int = 0) -> tuple[Tensor, ...]:
    """q, k, v, g, beta and a state; a token forgets up to exp(-forget)."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator)

    return (
        normal(n_tokens, shape.key_heads, shape.dk),
        normal(n_tokens, shape.key_heads, shape.dk),
        normal(n_tokens, shape.value_heads, shape.dv),
        -forget * torch.rand(n_tokens, shape.value_heads, generator=generator),
        torch.rand(n_tokens, shape.value_heads, generator=generator),
        normal(shape.value_heads, shape.dv, shape.dk),
    )


def tokens_of(arguments: tuple[Tensor, ...], start: int, end: int) -> tuple[Tensor, ...]:
    """q, k, v, g, beta of some of the tokens."""
    return tuple(x[start:end] for x in arguments[:5])


def poisoned(x: Tensor, *, before: int = 3, after: int = 5) -> Tensor:
    """The same values inside a larger allocation that is NaN everywhere else."""
    n_rows = x.shape[0]
    room = x.new_full((before + n_rows + after, *x.shape[1:]), torch.nan)
    room[before : before + n_rows] = x
    return room[before : before + n_rows]


def pools(shape: Shape, slots: int, *, seed: int = 1) -> tuple[Tensor, Tensor]:
    """Pools of end states and of transitions that shrink what they act on."""
    generator = torch.Generator().manual_seed(seed)
    end = torch.randn(slots, shape.value_heads, shape.dv, shape.dk, generator=generator)
    step = torch.randn(slots, shape.value_heads, shape.dk, shape.dk, generator=generator)
    return end, 0.5 * step * shape.dk**-0.5


def rotary_table(n_positions: int, rotary_dim: int, *, theta: float = 10_000.0) -> Tensor:
    """Cosines then sines of every position, as SGLang keeps them."""
    inverse = theta ** -(torch.arange(0, rotary_dim, 2) / rotary_dim)
    angles = torch.arange(n_positions)[:, None] * inverse
    return torch.cat([angles.cos(), angles.sin()], -1)


@dataclass(frozen=True)
class Walks:
    """What a layer's walks take: tokens, the states they change, their runs, and what is stored."""

    tokens: tuple[Tensor, ...]
    states: Tensor
    slots: Tensor
    runs: Runs
    stored: tuple[Tensor, ...]
    out: Tensor

    def to(self, place: str | torch.dtype) -> "Walks":
        """Copies on another device, or with floating numbers in another type."""

        def moved(x: Tensor) -> Tensor:
            kept = isinstance(place, torch.dtype) and not x.is_floating_point()
            return x.clone() if kept else x.to(place, copy=True)

        index = (getattr(self.runs, field.name) for field in fields(Runs))
        return Walks(
            tuple(map(moved, self.tokens)),
            moved(self.states),
            moved(self.slots),
            Runs(*map(moved, index)),
            tuple(map(moved, self.stored)),
            moved(self.out),
        )

    def result(self, walk_pool: Callable[..., None], **options: str) -> tuple[Tensor, Tensor]:
        """Outputs and states after the walks; nothing of these is changed."""
        out, states = self.out.clone(), self.states.clone()
        walk_pool(*self.tokens, states, self.slots, self.runs, *self.stored, out, **options)
        return out, states


def runs_of(walks: list[list[int]], *, n_slots: int, last_slot: int | None = None) -> Runs:
    """Walks of runs with these lengths, one unread token between two walks."""
    generator = torch.Generator().manual_seed(2)
    starts, ends, at = [], [], 0
    for lengths in walks:
        for length in lengths:
            starts.append(at)
            at += length
            ends.append(at)
        at += 1
    n_runs = len(starts)
    segments = torch.randint(0, n_slots, (n_runs,), generator=generator, dtype=torch.int32)
    if last_slot is not None:
        segments[-1] = last_slot
    return Runs(
        torch.tensor([0, *map(len, walks)]).cumsum(0).int(),
        torch.tensor(starts, dtype=torch.int32),
        torch.tensor(ends, dtype=torch.int32),
        segments,
        torch.randint(3, 100, (n_runs,), generator=generator, dtype=torch.int32),
        torch.randint(0, 300, (n_runs,), generator=generator),
    )


def delta_walks(
    walks: list[list[int]], *, dtype: torch.dtype, shape: Shape, last_slot: int | None = None
) -> Walks:
    """Walks of a gated delta network, everything around them NaN."""
    runs = runs_of(walks, n_slots=6, last_slot=last_slot)
    n_tokens = int(runs.ends[-1])
    *tokens, _ = rule(n_tokens, shape, forget=0.2)
    mixed = (poisoned(x.to(dtype)) for x in tokens[:3])
    gates = (poisoned(x) for x in tokens[3:])
    states = torch.randn(len(walks) + 2, *pools(shape, 1)[0].shape[1:])
    stored = tuple(poisoned(pool.to(dtype)) for pool in pools(shape, 6))
    slots = torch.arange(1, len(walks) + 1).flip(0)
    out = torch.full((n_tokens, shape.value_heads, shape.dv), 7.0)
    return Walks((*mixed, *gates), states, slots, runs, stored, out)


def lightning_walks(
    walks: list[list[int]],
    *,
    dtype: torch.dtype,
    sizes: tuple[int, int, int, int] = (3, 32, 24, 16),
    last_slot: int | None = None,
) -> Walks:
    """Walks of Lightning attention; sizes are heads, DK, DV and turned dimensions."""
    heads, dk, dv, rotary_dim = sizes
    generator = torch.Generator().manual_seed(0)

    def normal(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator)

    runs = runs_of(walks, n_slots=6, last_slot=last_slot)
    n_tokens = int(runs.ends[-1])
    tokens = (poisoned(normal(n_tokens, heads, dim).to(dtype)) for dim in (dk, dk, dv))
    stored = (poisoned(normal(6, heads, dk, dv).to(dtype)), rotary_table(300, rotary_dim))
    slots = torch.arange(1, len(walks) + 1).flip(0)
    out = torch.full((n_tokens, heads, dv), 7.0)
    states = normal(len(walks) + 2, heads, dk, dv)
    slope = torch.logspace(-2, 0, heads)
    return Walks((*tokens, slope), states, slots, runs, stored, out)


def packed_segments(
    lengths: list[int], *, dtype: torch.dtype, sizes: tuple[int, int, int] = (3, 32, 24)
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Keys and values of Lightning segments back to back, NaN around them.

    Sizes are heads, DK and DV.
    """
    heads, dk, dv = sizes
    generator = torch.Generator().manual_seed(4)
    k, v = (
        poisoned(torch.randn(sum(lengths), heads, dim, generator=generator).to(dtype))
        for dim in (dk, dv)
    )
    return k, v, torch.logspace(-2, 0, heads), torch.tensor([0, *lengths]).cumsum(0).int()


def histories(
    n_runs: int, n_channels: int, *, dtype: torch.dtype, width: int = 3
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Runs that follow a segment, go on from a prefix or begin; unused slots are NaN."""
    generator = torch.Generator().manual_seed(5)
    stored, own = (
        poisoned(torch.randn(n, n_channels, width, generator=generator).to(dtype)) for n in (9, 6)
    )
    slots = torch.tensor([5, 2, 4])
    stored[0], own[[0, 1, 3]] = torch.nan, torch.nan
    kind = torch.arange(n_runs) % 3
    segments = torch.randint(1, 9, (n_runs,), generator=generator).where(kind == 0, 0)
    rows = torch.randint(0, 3, (n_runs,), generator=generator).where(kind == 1, -1)
    return stored, segments, own, slots, rows
