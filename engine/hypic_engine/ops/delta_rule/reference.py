"""The gated delta rule in plain torch: what every kernel must compute.

A head's state ``h`` is a matrix [DV, DK]; a token with key k, value v, query q, write strength b
and log decay g turns it into ``exp(g) h (I - b k k^T) + b v k^T`` and reads ``h q`` from the
result. Keys and queries are normalised here, so callers give them as the convolution left them.
Value head i uses key head ``i // (HV // HK)``. Does not know of segments, slots or batches.

Shapes everywhere: q, k [T, HK, DK]; v [T, HV, DV]; g, beta [T, HV]; state [HV, DV, DK].
Computes in float32, or in float64 when given float64.
"""

import torch
from torch import Tensor

from .chunks import WIDTHS, chunk_maps, compose, cut, outputs
from .inputs import heads, normalized, working


def recurrent(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Outputs [T, HV, DV] and the state after the last token, token by token: the definition."""
    n_heads = v.shape[1]
    h = working(state)
    q = heads(normalized(q) * q.shape[-1] ** -0.5, n_heads)
    k, v = heads(normalized(k), n_heads), working(v)
    decay, beta = working(g).exp(), working(beta)
    out = torch.empty_like(v)
    for t in range(v.shape[0]):
        h = h * decay[t, :, None, None]
        written = beta[t, :, None] * (v[t] - (h @ k[t, :, :, None]).squeeze(-1))
        h = h + written[:, :, None] * k[t, :, None, :]
        out[t] = (h @ q[t, :, :, None]).squeeze(-1)
    return out, h


def chunked(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """What `recurrent` gives, a chunk of tokens at a time."""
    out, last, _ = snapshots(q, k, v, g, beta, state)
    return out, last


def snapshots(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """What `chunked` gives, and the states before every 64th token [T / 64, HV, DV, DK]."""
    layout = cut([(0, v.shape[0])], v.shape[0], v.device)
    maps = chunk_maps(k, v, g, beta, layout)
    before, last = compose(map(maps.pair, layout.chunks[0]), working(state))
    every = WIDTHS[-1] // layout.tokens.shape[1]
    within = torch.stack(before[::every]) if before else last[None][:0]
    return outputs(q, maps, before, layout), last, within


def operators(k: Tensor, v: Tensor, g: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    """What the tokens do to a state: ``after = before @ transition + end_state``.

    Returns:
        The end state from a zero state [HV, DV, DK] and the transition [HV, DK, DK].
    """
    n_tokens, n_heads, dv = v.shape
    dk = k.shape[-1]
    layout = cut([(0, n_tokens)], n_tokens, v.device)
    maps = chunk_maps(k, v, g, beta, layout)
    # Rows of a state never mix: DV rows that start at zero give the end state, DK rows that start
    # as the identity and are written no values give the transition, both in one pass.
    eye = torch.eye(dk, dtype=maps.step.dtype, device=v.device).expand(n_heads, dk, dk)
    rows = torch.cat([eye.new_zeros(n_heads, dv, dk), eye], dim=1)
    end = torch.nn.functional.pad(maps.end, (0, 0, 0, dk))
    _, rows = compose(zip(end.unbind(1), maps.step.unbind(1), strict=True), rows)
    return rows[:, :dv], rows[:, dv:]
