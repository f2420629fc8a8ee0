"""Lightning attention: one layer of a batch that uses the segment cache.

A segment's transition is a number known from its length, so only its end state is stored, as its
tokens make it at positions from 0; keys enter a state after RoPE, so it is turned to the segment's
true position on use. Tensor shapes: N computed tokens, B rows, H heads, DK/DV their sizes.
"""

from typing import Any

import torch
from sglang.srt.layers.attention.linear import seg_la
from torch import Tensor

from ...ops import lightning
from .family import Inputs
from .plan import ForwardPlan
from .pool import OperatorPool
from .rotary import Rotary


class Lightning:
    """See `family.LinearAttention`."""

    def __init__(
        self, stock: Any, pool: OperatorPool, rotary: Rotary | None, *, n_positions: int
    ) -> None:
        """Keep SGLang's linear backend, the pool and how keys are turned.

        Args:
            stock: SGLang's linear backend, which has each batch's metadata and the decay rates.
            pool: end states of cached segments.
            rotary: of the linear layers, or None where their keys are not turned.
            n_positions: most tokens of a prompt.
        """
        self._stock = stock
        self._pool = pool
        nothing_turns = torch.empty(n_positions, 0, device=pool.states.device)
        self._cos_sin = nothing_turns if rotary is None else rotary.cos_sin

    def extend(self, plan: ForwardPlan, layer: Any, inputs: Inputs) -> Tensor:
        """Outputs [N, H * DV]."""
        stock, pool = self._stock, self._pool
        q, k, v = inputs.q, inputs.k, inputs.v
        states = stock.req_to_token_pool.mamba2_layer_cache(layer.layer_id).temporal
        index = stock.req_to_token_pool.mamba_map[layer.layer_id]
        slots = stock.forward_metadata.mamba_cache_indices.to(torch.int64)
        slope = stock.tp_slope[layer.layer_id].flatten()
        out = torch.empty_like(v)
        if plan.walks is not None:
            lightning.walk_pool(
                q,
                k,
                v,
                slope,
                states,
                slots[plan.walk_rows],
                plan.walks,
                pool.states[index],
                self._cos_sin,
                out,
            )
        self._last_runs(plan, layer, (q, k, v), states, out)
        kept = plan.kept
        if kept is not None:
            ends = lightning.end_states(k[kept.tokens], v[kept.tokens], slope, kept.offsets)
            pool.states[index][kept.operators] = ends.to(pool.states.dtype)
        return out.flatten(1)

    def _last_runs(
        self,
        plan: ForwardPlan,
        layer: Any,
        tokens: tuple[Tensor, Tensor, Tensor],
        states: Tensor,
        out: Tensor,
    ) -> None:
        """The rows' last runs, and rows without segments, in the stock kernel."""
        chosen = plan.final_tokens
        q, k, v = (x.contiguous() if chosen is None else x[chosen] for x in tokens)
        offsets, slots = plan.final_offsets, self._stock.forward_metadata.mamba_cache_indices
        meta = seg_la.SegLaMeta(
            batch_size=len(slots),
            max_q_length=None,
            q_offsets=offsets,
            s_offsets=slots,
            q_lengths=offsets.diff(),
            s_scales=torch.ones_like(slots),
        )
        result = seg_la.seg_la_fwd(
            q, k, v, states, self._stock.tp_slope[layer.layer_id], meta, decouple=True
        )
        if chosen is None:
            out.copy_(result)
        else:
            out[chosen] = result
