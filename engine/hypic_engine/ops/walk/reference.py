"""The walk of one request through one linear layer, in plain torch.

A run of tokens and a cached segment do the same kind of thing to a state, so both become pairs and
are applied in order. Arguments and shapes as in `delta_rule`.
"""

from collections.abc import Sequence

from torch import Tensor

from ..delta_rule.chunks import Pair, chunk_maps, compose, cut, outputs
from ..delta_rule.inputs import working
from ..runs import Runs


def walk(  # noqa: PLR0917 - what the rule takes, then the runs
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    state: Tensor,
    runs: Sequence[tuple[int, int]],
    S: Sequence[Tensor | None],  # noqa: N803 - the symbols of the mathematics
    T: Sequence[Tensor | None],  # noqa: N803
) -> tuple[Tensor, Tensor]:
    """Outputs of the runs' tokens and the last state.

    Args:
        q: queries; k, v, g, beta alike: what the layer computed for the tokens.
        k: keys.
        v: values.
        g: log decay.
        beta: write strength.
        state: the state before the first run, not changed.
        runs: (start, end) of each run on the token axis.
        S: end state of the segment that follows each run, or ``None`` where none does.
        T: its transition.
    """
    layout = cut(runs, v.shape[0], v.device)
    maps = chunk_maps(k, v, g, beta, layout)
    pairs: list[Pair] = []
    places: list[int] = []
    for chunks, end, step in zip(layout.chunks, S, T, strict=True):
        places.extend(range(len(pairs), len(pairs) + len(chunks)))
        pairs.extend(map(maps.pair, chunks))
        if end is not None and step is not None:
            pairs.append((end.to(maps.end.dtype), step.to(maps.step.dtype)))
    before, last = compose(pairs, working(state))
    return outputs(q, maps, [before[place] for place in places], layout), last


def walk_pool(  # noqa: PLR0917
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    states: Tensor,
    slots: Tensor,
    runs: Runs,
    S_pool: Tensor,  # noqa: N803
    T_pool: Tensor,  # noqa: N803
    out: Tensor,
) -> None:
    """All walks of a batch; arguments as in the package."""
    for slot, steps in zip(slots.tolist(), runs, strict=True):
        low, high = steps[0][0], max(end for _, end, *_ in steps)
        S = [S_pool[segment] if segment >= 0 else None for _, _, segment, *_ in steps]  # noqa: N806
        T = [T_pool[segment] if segment >= 0 else None for _, _, segment, *_ in steps]  # noqa: N806
        own = slice(low, high)
        spans = [(start - low, end - low) for start, end, *_ in steps]
        read, last = walk(q[own], k[own], v[own], g[own], beta[own], states[slot], spans, S, T)
        states[slot] = last.to(states.dtype)
        for (start, end, *_), (first, stop) in zip(steps, spans, strict=True):
            out[start:end] = read[first:stop].to(out.dtype)
