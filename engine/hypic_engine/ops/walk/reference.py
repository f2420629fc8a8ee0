"""The walk of one request through one linear layer, in plain torch.

A run of tokens and a cached segment do the same kind of thing to a state, so both become pairs and
are applied in order. Arguments and shapes as in `delta_rule`.
"""

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor

from ..delta_rule.chunks import Pair, chunk_maps, compose, cut, outputs
from ..delta_rule.inputs import working


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
    state: Tensor,
    run_offsets: Tensor,
    operator_slots: Tensor,
    S_pool: Tensor,  # noqa: N803
    T_pool: Tensor,  # noqa: N803
) -> tuple[Tensor, Tensor]:
    """`walk` with runs and operators given by index tensors, as the kernel takes them."""
    offsets, slots = run_offsets.tolist(), operator_slots.tolist()
    runs = list(pairwise(offsets))
    S = [S_pool[slot] if slot >= 0 else None for slot in slots]  # noqa: N806
    T = [T_pool[slot] if slot >= 0 else None for slot in slots]  # noqa: N806
    return walk(q, k, v, g, beta, state, runs, S, T)
