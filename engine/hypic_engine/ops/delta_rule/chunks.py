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

from .inputs import normalized, working

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

    Value heads are written as groups [HK, HV // HK], so that a key head is never copied.

    Attributes:
        step: transitions [HV, chunks, DK, DK].
        end: end states [HV, chunks, DV, DK].
        written: what each token writes when the chunk begins at zero [HV, chunks, width, DV].
        read: what it takes back of the state at the chunk's start [HV, chunks, width, DK].
        k: normalised keys [HK, 1, chunks, width, DK].
        since: decay from each earlier token to each token, 0 for later ones
            [HK, HV // HK, chunks, width, width].
        since_start: decay from the chunk's start [HK, HV // HK, chunks, width, 1].
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
        return self.end[:, chunk], self.step[:, chunk]


def _gather(x: Tensor, n_groups: int, layout: Layout) -> Tensor:
    padded = torch.nn.functional.pad(x.flatten(2).movedim(0, 1), (0, 0, 0, 1))
    return padded[:, layout.tokens].unflatten(0, (n_groups, -1))


def _decays(g: Tensor) -> tuple[Tensor, Tensor]:
    total = g.double().clamp_(min=LOWEST_LOG_DECAY).cumsum(-2)
    later = torch.ones(g.shape[-2], g.shape[-2], dtype=torch.bool, device=g.device).triu_(1)
    since = (total - total.mT).masked_fill_(later, -torch.inf)
    return since.to(g.dtype).exp_(), total.to(g.dtype).exp_()


def chunk_maps(k: Tensor, v: Tensor, g: Tensor, beta: Tensor, layout: Layout) -> ChunkMaps:
    """The map of every chunk; arguments as the layer gives them."""
    n_groups, dv = k.shape[1], v.shape[-1]
    k, v = _gather(normalized(k), n_groups, layout), _gather(working(v), n_groups, layout)
    beta = _gather(working(beta)[..., None], n_groups, layout)
    since, since_start = _decays(_gather(working(g)[..., None], n_groups, layout))
    # Only what lies below the diagonal of the system is ever read.
    system = since * (k @ k.mT).mul(beta)
    right = torch.cat([beta * v, (beta * since_start) * k], dim=-1)
    solved = torch.linalg.solve_triangular(system, right, upper=False, unitriangular=True)
    # The last row of `since` is the decay from each token to the end; padding decays nothing.
    to_end = since[..., -1, :, None] * k
    moved = (solved.mT @ to_end).flatten(0, 1)
    step = moved[..., dv:, :].neg()
    step.diagonal(dim1=-2, dim2=-1).add_(since_start[..., -1, :].flatten(0, 1))
    written, read = solved.flatten(0, 1).split([dv, k.shape[-1]], dim=-1)
    return ChunkMaps(step, moved[..., :dv, :], written, read, k, since, since_start)


def compose(pairs: Iterable[Pair], state: Tensor) -> tuple[list[Tensor], Tensor]:
    """The state before each pair and after the last, all pairs applied in order."""
    before = []
    for end, step in pairs:
        before.append(state)
        state = torch.baddbmm(end, state, step)
    return before, state


def outputs(q: Tensor, maps: ChunkMaps, before: Sequence[Tensor], layout: Layout) -> Tensor:
    """What each token reads [T, HV, DV]; `before` holds the state at the start of each chunk."""
    n_heads, dv = maps.written.shape[0], maps.written.shape[-1]
    out = maps.written.new_zeros(n_heads, layout.n_tokens + 1, dv)
    if before:
        h = torch.stack(list(before), dim=1).mT
        q = _gather(normalized(q) * q.shape[-1] ** -0.5, maps.k.shape[0], layout)
        seen = (maps.since * (q @ maps.k.mT)).flatten(0, 1)
        read = (maps.since_start * q).flatten(0, 1) @ h
        read += seen @ (maps.written - maps.read @ h)
        out[:, layout.tokens] = read
    return out[:, :-1].movedim(0, 1).contiguous()
