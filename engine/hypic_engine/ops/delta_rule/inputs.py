"""Bring a layer's tensors into the form the rule is written in. Does not know the rule."""

import torch
from torch import Tensor

NORM_EPS = 1e-6


def working(x: Tensor) -> Tensor:
    """The values in float32, or in float64 where they are that already."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def normalized(x: Tensor) -> Tensor:
    """Vectors of length one, as the stock kernels normalise queries and keys."""
    x = working(x)
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + NORM_EPS)


def heads(x: Tensor, n_heads: int, *, dim: int = 1) -> Tensor:
    """Key heads repeated so that there is one for each of `n_heads` value heads."""
    return x.repeat_interleave(n_heads // x.shape[dim], dim)
