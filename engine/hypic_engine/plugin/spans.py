"""Positions of the tokens of many spans at once: a fixed number of steps, however many tokens."""

from collections.abc import Sequence

import torch
from torch import Tensor

Span = tuple[int, int]
"""Tokens [start, end)."""


def positions(spans: Sequence[Span]) -> Tensor:
    """The spans' tokens one after the other, int64 [N] on the host."""
    bounds = torch.tensor(spans, dtype=torch.int64).reshape(-1, 2)
    starts, lengths = bounds[:, 0], bounds[:, 1] - bounds[:, 0]
    shifts = starts - (lengths.cumsum(0) - lengths)
    return torch.repeat_interleave(shifts, lengths) + torch.arange(int(lengths.sum()))


def repeated(values: Sequence[int], lengths: Sequence[int]) -> Tensor:
    """Each value as often as its length says, int64 [N] on the host."""
    return torch.repeat_interleave(torch.tensor(values), torch.tensor(lengths))
