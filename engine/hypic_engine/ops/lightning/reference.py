"""Lightning attention in plain torch: what the kernel must compute.

A head's state ``h`` is a matrix [DK, DV]; a token with key k, value v and query q turns it into
``exp(-slope) h + k v^T`` and reads ``scale h^T q`` from the result, ``scale = DK ** -0.5``. A run
of n tokens therefore does ``exp(-slope n) h + S`` to any state: its transition is one number, and
only S is ever stored. Does not know of slots or batches.

Shapes everywhere: q, k [T, H, DK]; v [T, H, DV]; slope [H], positive; state [H, DK, DV]. Computes
in float32, or in float64 when given float64.
"""

from itertools import pairwise

import torch
from torch import Tensor

from ..delta_rule.inputs import working
from ..move_keys.reference import turn
from ..runs import Runs

CHUNK = 64


def _decay(slope: Tensor, n_tokens: Tensor) -> Tensor:
    """Decay of each head [H] over each number of tokens [...]: [H, ...]."""
    rate = working(slope).reshape(-1, *(1 for _ in n_tokens.shape))
    return (-rate * n_tokens).exp()


def recurrent(
    q: Tensor, k: Tensor, v: Tensor, slope: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Outputs [T, H, DV] and the state after the last token, token by token: the definition."""
    h, q = working(state), working(q) * q.shape[-1] ** -0.5
    k, v = working(k), working(v)
    decay = _decay(slope, torch.ones((), device=v.device))[:, None, None]
    out = torch.empty_like(v)
    for t in range(v.shape[0]):
        h = h * decay + k[t, :, :, None] * v[t, :, None, :]
        out[t] = (q[t, :, None, :] @ h).squeeze(1)
    return out, h


def chunked(q: Tensor, k: Tensor, v: Tensor, slope: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """What `recurrent` gives, a chunk of tokens at a time."""
    h, q = working(state), working(q) * q.shape[-1] ** -0.5
    k, v = working(k), working(v)
    outs = [v.new_zeros(0, *v.shape[1:])]
    for first in range(0, v.shape[0], CHUNK):
        own = slice(first, first + CHUNK)
        queries, keys, values = (x[own].transpose(0, 1) for x in (q, k, v))
        place = torch.arange(values.shape[1], device=v.device)
        distance = place[:, None] - place
        seen = (queries @ keys.mT) * _decay(slope, distance.clamp(min=0)) * (distance >= 0)
        before = queries * _decay(slope, place + 1)[..., None]
        outs.append((seen @ values + before @ h).transpose(0, 1))
        h = h * _decay(slope, place[-1] + 1)[:, None, None] + _end_state(keys, values, slope)
    return torch.cat(outs), h


def _end_state(keys: Tensor, values: Tensor, slope: Tensor) -> Tensor:
    left = torch.arange(keys.shape[1] - 1, -1, -1, device=keys.device)
    return (keys * _decay(slope, left)[..., None]).mT @ values


def end_states(k: Tensor, v: Tensor, slope: Tensor, offsets: Tensor) -> Tensor:
    """The states [K, H, DK, DV] that segments make of zero, in one product a head."""
    keys, values = (working(x).transpose(0, 1) for x in (k, v))
    spans = pairwise(offsets.tolist())
    ends = [_end_state(keys[:, first:last], values[:, first:last], slope) for first, last in spans]
    return torch.stack(ends)


def rotated(state: Tensor, delta: Tensor, cos_sin: Tensor) -> Tensor:
    """The state [H, DK, DV] that the same tokens make when they stand `delta` positions later.

    Keys enter the state after they were turned to their positions. All of them turn by the same
    further angle, so the sum of their products turns with them, on its key axis. Pairs of a key are
    halves of its turned dimensions.

    Args:
        state: made at some positions.
        delta: int64 [1].
        cos_sin: [positions, rotary dimensions], cosines then sines.
    """
    rotary_dim = cos_sin.shape[1]
    keys = working(state).mT.flatten(0, 1)[None]
    turning, rest = keys[..., :rotary_dim], keys[..., rotary_dim:]
    keys = torch.cat([turn(turning, delta, cos_sin, neox=True), rest], dim=-1)
    return keys.reshape(state.mT.shape).mT


def walk_pool(  # noqa: PLR0917 - what the rule takes, then the walks
    q: Tensor,
    k: Tensor,
    v: Tensor,
    slope: Tensor,
    states: Tensor,
    slots: Tensor,
    runs: Runs,
    pool: Tensor,
    cos_sin: Tensor,
    out: Tensor,
) -> None:
    """All walks of a batch; arguments as in the package."""
    for slot, steps in zip(slots.tolist(), runs, strict=True):
        h = working(states[slot])
        for start, end, segment, length, delta in steps:
            own = slice(start, end)
            read, h = chunked(q[own], k[own], v[own], slope, h)
            out[own] = read.to(out.dtype)
            if segment >= 0:
                n_tokens, later = (
                    torch.tensor(length, device=h.device),
                    runs.deltas.new_tensor([delta]),
                )
                decay = _decay(slope, n_tokens)[:, None, None]
                h = h * decay + rotated(pool[segment], later, cos_sin).to(h.dtype)
        states[slot] = h.to(states.dtype)
