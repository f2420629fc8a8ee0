"""Inputs of the operations, and buffers whose spare rows are not numbers."""

from dataclasses import dataclass

import torch
from torch import Tensor

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


def lightning_walk(
    runs: list[int],
    *,
    dtype: torch.dtype,
    sizes: tuple[int, int, int, int] = (3, 32, 24, 16),
    last_slot: int = 2,
) -> tuple[Tensor, ...]:
    """Arguments of Lightning's walk; sizes are heads, DK, DV and turned dimensions."""
    heads, dk, dv, rotary_dim = sizes
    generator = torch.Generator().manual_seed(0)

    def normal(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator)

    n_tokens, n_runs = sum(runs), len(runs)
    slots = torch.randint(0, 6, (n_runs,), generator=generator, dtype=torch.int32)
    slots[-1] = last_slot
    return (
        *(poisoned(normal(n_tokens, heads, dim).to(dtype)) for dim in (dk, dk, dv)),
        torch.logspace(-2, 0, heads),
        normal(heads, dk, dv),
        torch.tensor([0, *runs]).cumsum(0).int(),
        slots,
        torch.randint(3, 100, (n_runs,), generator=generator, dtype=torch.int32),
        torch.randint(0, 300, (n_runs,), generator=generator),
        poisoned(normal(6, heads, dk, dv).to(dtype)),
        rotary_table(300, rotary_dim),
    )
