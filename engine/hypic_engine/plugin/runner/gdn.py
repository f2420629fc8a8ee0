"""Gated delta networks: one layer of a batch that uses the segment cache.

Runs the stock convolution and chunk kernels where a token is computed, walks cached segments in
between, and stores the operators of rows that become entries. Tensor shapes: N computed tokens,
R virtual rows, B rows, HK/HV key and value heads, DK/DV their sizes, D convolution channels.
"""

from typing import Any

import torch
from sglang.srt.layers.attention.linear import gdn_backend
from torch import Tensor

from ...ops import delta_rule, walk
from ...ops.choice import runs_kernel
from .family import Inputs
from .plan import ForwardPlan, Kept
from .pool import OperatorPool


class GatedDelta:
    """See `family.LinearAttention`."""

    def __init__(self, stock: Any, pool: OperatorPool, *, composes: bool) -> None:
        """Keep SGLang's linear backend and the pool.

        Args:
            stock: SGLang's linear backend, which has each batch's metadata.
            pool: operators of cached segments.
            composes: whether transitions are applied; otherwise states are summed.
        """
        self._stock = stock
        self._pool = pool
        self._composes = composes

    def extend(self, plan: ForwardPlan, layer: Any, inputs: Inputs) -> Tensor:
        """Outputs [1, N, HV, DV]."""
        stock, pool = self._stock, self._pool
        cache = stock.req_to_token_pool.mamba2_layer_cache(layer.layer_id)
        index = stock.req_to_token_pool.mamba_map[layer.layer_id]
        slots = stock.forward_metadata.mamba_cache_indices.to(torch.int64)
        mixed, tails = _convolve(plan, layer, inputs.mixed_qkv, pool.tails[index])
        cache.conv[0][slots] = tails[plan.last]
        q, k, v = _split(layer, mixed)
        g, beta = gdn_backend.fused_gdn_gating(layer.A_log, inputs.a, inputs.b, layer.dt_bias)
        out = torch.empty_like(v)
        for part in plan.walks:
            own = slice(*part.tokens)
            before, state = walk.walk_pool(
                q[0, own],
                k[0, own],
                v[0, own],
                g[0, own],
                beta[0, own],
                cache.temporal[slots[part.row]].float(),
                part.run_offsets,
                part.operators,
                pool.states[index],
                pool.transitions[index],
            )
            out[0, own] = before.to(out.dtype)
            cache.temporal[slots[part.row]] = state.to(cache.temporal.dtype)
        _last_runs(stock, plan, cache.temporal, slots, (q, k, v, g, beta), out)
        for row in plan.kept:
            _store(pool, index, row, k, v, g, beta, tails, composes=self._composes)
        return out


def _convolve(
    plan: ForwardPlan, layer: Any, mixed_qkv: Tensor, stored: Tensor
) -> tuple[Tensor, Tensor]:
    """[N, D] after the convolution, and the last three inputs of each virtual row [R, D, 3]."""
    tails = stored[plan.tails]
    n_rows = tails.shape[0]
    mixed = gdn_backend.causal_conv1d_fn(
        mixed_qkv.transpose(0, 1),
        layer.conv_weights,
        layer.bias,
        activation=layer.activation,
        conv_states=tails,
        has_initial_state=plan.tails > 0,
        cache_indices=torch.arange(n_rows, dtype=torch.int32, device=tails.device),
        query_start_loc=plan.offsets,
        seq_lens_cpu=plan.lengths_cpu,
    )
    return mixed.transpose(0, 1)[: mixed_qkv.shape[0]], tails


def _split(layer: Any, mixed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = mixed.split([layer.q_dim, layer.k_dim, layer.v_dim], dim=-1)
    return (
        q.reshape(1, -1, layer.num_q_heads, layer.head_q_dim),
        k.reshape(1, -1, layer.num_k_heads, layer.head_k_dim),
        v.reshape(1, -1, layer.num_v_heads, layer.head_v_dim),
    )


def _last_runs(
    stock: Any,
    plan: ForwardPlan,
    states: Tensor,
    slots: Tensor,
    inputs: tuple[Tensor, ...],
    out: Tensor,
) -> None:
    """The rows' last runs, and rows without segments, in the stock chunk kernel."""
    tokens = plan.final_tokens
    chosen = inputs if tokens is None else tuple(x[:, tokens] for x in inputs)
    q, k, v, g, beta = (x.contiguous() for x in chosen)
    result, last, _ = stock.kernel_dispatcher.extend(
        q,
        k,
        v,
        g,
        beta,
        ssm_states=states,
        cache_indices=slots.to(torch.int32),
        query_start_loc=plan.final_offsets,
    )
    if out.device.type == "cpu":
        states[slots] = last.to(states.dtype)
    if tokens is None:
        out.copy_(result)
    else:
        out[:, tokens] = result


def _store(
    pool: OperatorPool,
    index: int,
    row: Kept,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    tails: Tensor,
    *,
    composes: bool,
) -> None:
    own = slice(*row.tokens)
    operators = operators_by_stock_kernel if runs_kernel(k) else delta_rule.operators
    state, transition = operators(k[0, own], v[0, own], g[0, own], beta[0, own], row.seam)
    pool.states[index, row.operator] = state.to(pool.states.dtype)
    if not composes:
        transition = torch.eye(transition.shape[-1], device=transition.device)
    pool.transitions[index, row.operator] = transition.to(pool.transitions.dtype)
    pool.tails[index, row.operator] = tails[row.virtual_row]


def operators_by_stock_kernel(
    k: Tensor, v: Tensor, g: Tensor, beta: Tensor, seam: int
) -> tuple[Tensor, Tensor]:
    """`delta_rule.operators` by SGLang's chunk kernel, in one pass.

    Rows of a state are independent, so DV rows from zero with the segment's values and DK rows from
    the identity with zero values give state and transition together.
    """
    from sglang.srt.layers.attention.fla.chunk import chunk_gated_delta_rule  # noqa: PLC0415

    (n_tokens, n_heads, d_value), d_key = v.shape, k.shape[-1]
    g, beta = g.clone(), beta.clone()
    g[:seam] = 0
    beta[:seam] = 0
    values = torch.cat([v, v.new_zeros(n_tokens, n_heads, d_key)], dim=-1)
    state = torch.zeros(1, n_heads, d_value + d_key, d_key, dtype=torch.float32, device=v.device)
    state[0, :, d_value:] = torch.eye(d_key, device=v.device)
    k = k.contiguous()
    chunk_gated_delta_rule(
        q=k[None],
        k=k[None],
        v=values[None],
        g=g[None],
        beta=beta[None],
        initial_state=state,
        initial_state_indices=torch.zeros(1, dtype=torch.int32, device=v.device),
        cu_seqlens=torch.tensor([0, n_tokens], dtype=torch.int32, device=v.device),
        head_first=False,
        use_qk_l2norm_in_kernel=True,
    )
    return state[0, :, :d_value], state[0, :, d_value:]
