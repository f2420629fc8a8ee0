"""Moving cached keys, in plain torch: what the kernel must compute. Arguments as in the package."""

import torch
from torch import Tensor


def turn(x: Tensor, delta: Tensor, cos_sin: Tensor, neox: bool) -> Tensor:  # noqa: FBT001
    """Keys [n, HKV, rotary_dim] turned by `delta` positions, computed in float32."""
    cos, sin = cos_sin[delta.abs()].float()[:, None].chunk(2, dim=-1)
    sin = sin * delta.sign()[:, None, None]
    wide = x.float()
    first, second = wide.chunk(2, -1) if neox else (wide[..., 0::2], wide[..., 1::2])
    pairs = (first * cos - second * sin, second * cos + first * sin)
    turned = torch.cat(pairs, -1) if neox else torch.stack(pairs, -1).flatten(-2)
    # Not multiplied by a cosine of one: zeros keep their sign, and what is not a number its bits.
    return torch.where((delta == 0)[:, None, None], x, turned.to(x.dtype))


def move(
    k_cache: Tensor,
    v_cache: Tensor,
    src: Tensor,
    dst: Tensor,
    delta: Tensor,
    cos_sin: Tensor,
    rotary_dim: int,
    neox: bool,  # noqa: FBT001
) -> None:
    """Copy rows `src` to rows `dst`, keys turned."""
    k = k_cache[src]
    k[..., :rotary_dim] = turn(k[..., :rotary_dim], delta, cos_sin, neox)
    k_cache[dst] = k
    v_cache[dst] = v_cache[src]
