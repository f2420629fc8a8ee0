"""A chunk of tokens as one affine map of the state: ``h -> h @ step + end``.

Inside a chunk the writes depend on each other through a triangular system (the WY form of a product
of Householder-like factors); once that is solved for all chunks of all heads together, only the
small maps remain to be applied one after the other. All exponents are differences of cumulative log
decays that are zero or negative, so that no decay, however strong, overflows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .inputs import heads, normalized, working

WIDTHS = (8, 16, 32, 64)
STEP_COST_TOKENS = 16
LOWEST_LOG_DECAY = -1e3

Pair = tuple[Tensor, Tensor]
"""End state [HV, DV, DK] and transition [HV, DK, DK]."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which tokens each chunk holds.

    Attributes:
        tokens: token index of each place [chunks, width]; `n_tokens` where a chunk is padded.
        n_tokens: how many tokens there are.
        chunks: for each run, its chunks.
    """

    tokens: Tensor
    n_tokens: int
    chunks: tuple[range, ...]


def _pieces(run: tuple[int, int], width: int) -> int:
    return -(-(run[1] - run[0]) // width)


def cut(runs: Sequence[tuple[int, int]], n_tokens: int, device: torch.device) -> Layout:
    """Chunks of the width that suits the runs, none of which crosses the end of a run."""

    def cost(width: int) -> int:
        return sum(_pieces(run, width) for run in runs) * (width + STEP_COST_TOKENS)

    width = min(WIDTHS, key=cost)
    chunks: list[range] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end in runs:
        first = len(starts)
        starts.extend(range(start, end, width))
        ends.extend([end] * (len(starts) - first))
        chunks.append(range(first, len(starts)))
    start_of = torch.tensor(starts, dtype=torch.long, device=device)[:, None]
    end_of = torch.tensor(ends, dtype=torch.long, device=device)[:, None]
    tokens = start_of + torch.arange(width, device=device)
    return Layout(tokens.where(tokens < end_of, n_tokens), n_tokens, tuple(chunks))


@dataclass(frozen=True, slots=True)
class ChunkMaps:
    """The maps of all chunks, and what outputs are computed from once the states are known.

    Attributes:
        step: [chunks, HV, DK, DK].
        end: [chunks, HV, DV, DK].
        written: what each token writes when the chunk begins at zero [chunks, HV, width, DV].
        read: what it reads of the state at the chunk's start before writing, same with DK.
        k: normalised keys [chunks, HK, width, DK].
        since: decay from each earlier token to each token, 0 for later ones.
        since_start: decay from the chunk's start [chunks, HV, width, 1].
    """

    step: Tensor
    end: Tensor
    written: Tensor
    read: Tensor
    k: Tensor
    since: Tensor
    since_start: Tensor

    def pair(self, chunk: int) -> Pair:
        """What one chunk does to a state."""
        return self.end[chunk], self.step[chunk]


def _gather(x: Tensor, layout: Layout) -> Tensor:
    padded = torch.cat([x, x.new_zeros(1, *x.shape[1:])])
    return padded[layout.tokens].transpose(1, 2)


def _decays(g: Tensor) -> tuple[Tensor, Tensor]:
    total = g.double().clamp(min=LOWEST_LOG_DECAY).cumsum(-1)
    later = torch.ones(g.shape[-1], g.shape[-1], dtype=torch.bool, device=g.device).triu(1)
    since = (total[..., :, None] - total[..., None, :]).masked_fill(later, -torch.inf)
    return since.to(g.dtype).exp(), total[..., None].to(g.dtype).exp()


def chunk_maps(k: Tensor, v: Tensor, g: Tensor, beta: Tensor, layout: Layout) -> ChunkMaps:
    """The map of every chunk; arguments as the layer gives them."""
    n_heads, dv = v.shape[1:]
    k, v, g = _gather(normalized(k), layout), _gather(working(v), layout), working(g)
    beta = _gather(working(beta), layout)[..., None]
    since, since_start = _decays(_gather(g, layout))
    overlap = heads(k @ k.mT, n_heads)
    key = heads(k, n_heads)
    system = (beta * overlap * since).tril(-1)
    right = torch.cat([beta * v, beta * since_start * key], dim=-1)
    solved = torch.linalg.solve_triangular(system, right, upper=False, unitriangular=True)
    written, read = solved[..., :dv], solved[..., dv:]
    # The last row of `since` is the decay from each token to the end; padding decays nothing.
    to_end = since[..., -1, :, None] * key
    kept = since_start[..., -1:, :] * torch.eye(k.shape[-1], dtype=k.dtype, device=k.device)
    step = kept - read.mT @ to_end
    return ChunkMaps(step, written.mT @ to_end, written, read, k, since, since_start)


def compose(pairs: Iterable[Pair], state: Tensor) -> tuple[list[Tensor], Tensor]:
    """The state before each pair and after the last, all pairs applied in order."""
    before = []
    for end, step in pairs:
        before.append(state)
        state = torch.baddbmm(end, state, step)
    return before, state


def outputs(q: Tensor, maps: ChunkMaps, before: Sequence[Tensor], layout: Layout) -> Tensor:
    """What each token reads [T, HV, DV]; `before` holds the state at the start of each chunk."""
    n_heads, dv = maps.written.shape[1], maps.written.shape[-1]
    out = maps.written.new_zeros(layout.n_tokens + 1, n_heads, dv)
    if not before:
        return out[:-1]
    h = torch.stack(list(before)).mT
    q = _gather(normalized(q) * q.shape[-1] ** -0.5, layout)
    seen = heads(q @ maps.k.mT, n_heads) * maps.since
    read = seen @ (maps.written - maps.read @ h)
    read += maps.since_start * (heads(q, n_heads) @ h)
    out[layout.tokens] = read.transpose(1, 2)
    return out[:-1]
