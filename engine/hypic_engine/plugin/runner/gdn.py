"""Gated delta networks: one layer of a batch that uses the segment cache.

Runs the stock convolution and chunk kernels where a token is computed, walks cached segments in
between, and stores the operators of rows that become entries. Tensor shapes: N computed tokens,
R virtual rows, B rows, HK/HV key and value heads, DK/DV their sizes, D convolution channels.
"""

from itertools import pairwise
from typing import Any

import torch
from sglang.srt.layers.attention.linear import gdn_backend
from torch import Tensor

from ...ops import delta_rule, walk
from ...ops import tails as tails_op
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
        _track_tails(stock.forward_metadata, inputs.mixed_qkv, cache.conv[0])
        before = (plan.tails, cache.conv[0], slots, plan.continued)
        tails = tails_op.gather(pool.tails[index], *before)
        mixed = _convolve(plan, layer, inputs.mixed_qkv, tails)
        cache.conv[0][slots] = tails[plan.last]
        q, k, v = _split(layer, mixed)
        g, beta = gdn_backend.fused_gdn_gating(layer.A_log, inputs.a, inputs.b, layer.dt_bias)
        out = torch.empty_like(v)
        if plan.walks is not None:
            walk.walk_pool(
                q[0],
                k[0],
                v[0],
                g[0],
                beta[0],
                cache.temporal,
                slots[plan.walk_rows],
                plan.walks,
                pool.states[index],
                pool.transitions[index],
                out[0],
            )
        _last_runs(stock, plan, cache.temporal, slots, (q, k, v, g, beta), out)
        if plan.kept is not None:
            self._keep(plan.kept, index, (k[0], v[0], g[0], beta[0]), tails)
        return out

    def _keep(
        self, kept: Kept, index: int, inputs: tuple[Tensor, Tensor, Tensor, Tensor], tails: Tensor
    ) -> None:
        pool, operators = self._pool, kept.operators
        states, transitions = _operators(*inputs, kept)
        if not self._composes:
            size = transitions.shape[-1]
            transitions = torch.eye(size, device=states.device).expand_as(transitions)
        pool.states[index][operators] = states.to(pool.states.dtype)
        pool.transitions[index][operators] = transitions.to(pool.transitions.dtype)
        pool.tails[index][operators] = tails[kept.virtual_rows]


def _track_tails(metadata: Any, mixed_qkv: Tensor, stored: Tensor) -> None:
    """Keep the tails that SGLang's tree wants of plain rows, at the ends of whole chunks."""
    if metadata.has_mamba_track_mask:
        wanted = mixed_qkv[metadata.track_conv_indices].transpose(1, 2)
        stored[metadata.conv_states_mask_indices] = wanted.to(stored.dtype)


def _convolve(plan: ForwardPlan, layer: Any, mixed_qkv: Tensor, tails: Tensor) -> Tensor:
    """[N, D] after the convolution; each virtual row's tail [R, D, 3] becomes its last inputs."""
    n_rows = tails.shape[0]
    mixed = gdn_backend.causal_conv1d_fn(
        mixed_qkv.transpose(0, 1),
        layer.conv_weights,
        layer.bias,
        activation=layer.activation,
        conv_states=tails,
        has_initial_state=torch.ones(n_rows, dtype=torch.bool, device=tails.device),
        cache_indices=torch.arange(n_rows, dtype=torch.int32, device=tails.device),
        query_start_loc=plan.offsets,
        seq_lens_cpu=plan.lengths_cpu,
    )
    return mixed.transpose(0, 1)[: mixed_qkv.shape[0]]


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
    result, last, within = stock.kernel_dispatcher.extend(
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
    stock._track_mamba_state_extend(None, within, states, stock.forward_metadata)  # noqa: SLF001
    if tokens is None:
        out.copy_(result)
    else:
        out[:, tokens] = result


def _operators(k: Tensor, v: Tensor, g: Tensor, beta: Tensor, kept: Kept) -> tuple[Tensor, Tensor]:
    """End states [K, HV, DV, DK] and transitions [K, HV, DK, DK] of the kept rows."""
    k, v, g, beta = (x[kept.tokens] for x in (k, v, g, beta))
    if runs_kernel(k):
        return operators_by_stock_kernel(k, v, g, beta, kept.offsets)
    pairs = [
        delta_rule.operators(k[first:last], v[first:last], g[first:last], beta[first:last])
        for first, last in pairwise(kept.offsets.tolist())
    ]
    states, transitions = (torch.stack(part) for part in zip(*pairs, strict=True))
    return states, transitions


def operators_by_stock_kernel(
    k: Tensor, v: Tensor, g: Tensor, beta: Tensor, offsets: Tensor
) -> tuple[Tensor, Tensor]:
    """`delta_rule.operators` of several segments by SGLang's chunk kernel, in one pass.

    Rows of a state are independent, so DV rows from zero with a segment's values and DK rows from
    the identity with zero values give state and transition together.

    Args:
        k: [F, HK, DK] of all segments back to back; v [F, HV, DV], g and beta [F, HV] alike.
        v: values.
        g: log decay.
        beta: write strength.
        offsets: int32 [K + 1], where the segments lie.
    """
    from sglang.srt.layers.attention.fla.chunk import chunk_gated_delta_rule  # noqa: PLC0415

    (n_tokens, n_heads, d_value), d_key = v.shape, k.shape[-1]
    n_segments = offsets.shape[0] - 1
    values = torch.cat([v, v.new_zeros(n_tokens, n_heads, d_key)], dim=-1)
    rows = (n_segments, n_heads, d_value + d_key, d_key)
    state = torch.zeros(rows, dtype=torch.float32, device=v.device)
    state[:, :, d_value:] = torch.eye(d_key, device=v.device)
    k = k.contiguous()
    chunk_gated_delta_rule(
        q=k[None],
        k=k[None],
        v=values[None],
        g=g[None],
        beta=beta[None],
        initial_state=state,
        initial_state_indices=torch.arange(n_segments, dtype=torch.int32, device=v.device),
        cu_seqlens=offsets,
        head_first=False,
        use_qk_l2norm_in_kernel=True,
    )
    return state[:, :, :d_value], state[:, :, d_value:]
