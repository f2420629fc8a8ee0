"""Gathering tails in plain torch: what the kernel must do. Arguments as in the package."""

from torch import Tensor


def gather(stored: Tensor, segments: Tensor, own: Tensor, slots: Tensor, rows: Tensor) -> Tensor:
    """Tails [R, D, W]."""
    follows, continues = ((x[:, None, None]) for x in (segments > 0, rows >= 0))
    prefixes = own[slots[rows.clamp(min=0)]].where(continues, 0)
    return stored[segments].where(follows, prefixes)
