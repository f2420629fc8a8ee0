"""Plain torch in the signatures that SGLang 0.5.14 expects of its compiled CPU kernels.

Gated delta networks only. Heavy work is `ops.delta_rule`; here is the packing of sequences.
"""

from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...ops import delta_rule


def causal_conv1d_fn(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: str | None = "silu",
    conv_states: Tensor | None = None,
    has_initial_state: Tensor | None = None,
    cache_indices: Tensor | None = None,
    query_start_loc: Tensor | None = None,
    **_: Any,
) -> Tensor:
    """Causal convolution of packed sequences [D, N]; states [slots, D, W - 1] change in place."""
    assert conv_states is not None
    assert has_initial_state is not None
    assert cache_indices is not None
    assert query_start_loc is not None
    n_history = weight.shape[1] - 1
    out = torch.empty_like(x)
    slots, history = cache_indices.tolist(), has_initial_state.tolist()
    for row, (start, end) in enumerate(pairwise(query_start_loc.tolist())):
        if end == start:
            continue
        state = conv_states[slots[row]]
        before = state.to(x.dtype) if history[row] else torch.zeros_like(state, dtype=x.dtype)
        inputs = torch.cat([before, x[:, start:end]], dim=1)
        taps = weight.float()[:, None]
        mixed = F.conv1d(inputs.float()[None], taps, bias, groups=x.shape[0])[0]
        out[:, start:end] = (F.silu(mixed) if activation else mixed).to(x.dtype)
        state.copy_(inputs[:, -n_history:])
    return out


def causal_conv1d_update(
    x: Tensor,
    conv_state: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: str | None = None,
    conv_state_indices: Tensor | None = None,
    **_: Any,
) -> Tensor:
    """One token a sequence, [B, D]; states [slots, D, W - 1] change in place."""
    assert conv_state_indices is not None
    slots = conv_state_indices.to(torch.int64)
    inputs = torch.cat([conv_state[slots].to(x.dtype), x[:, :, None]], dim=2)
    mixed = (inputs.float() * weight.float()[None]).sum(dim=-1)
    if bias is not None:
        mixed = mixed + bias.float()
    conv_state[slots] = inputs[:, :, 1:].to(conv_state.dtype)
    return (F.silu(mixed) if activation else mixed).to(x.dtype)


def fused_gdn_gating(
    A_log: Tensor,  # noqa: N803 - SGLang's name
    a: Tensor,
    b: Tensor,
    dt_bias: Tensor,
    beta: float = 1.0,
    threshold: float = 20.0,
) -> tuple[Tensor, Tensor]:
    """Log decay and write strength [1, N, HV], fp32."""
    rate = F.softplus(a.float() + dt_bias.float(), beta=beta, threshold=threshold)
    return (-A_log.float().exp() * rate)[None], b.float().sigmoid()[None]


def chunk_gated_delta_rule(
    *,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    initial_state: Tensor,
    cu_seqlens: Tensor,
    **_: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """Packed sequences [1, N, H, D] from gathered states [B, HV, DV, DK].

    Returns:
        Outputs, last states, and the states before every 64th token of each sequence, packed
        [1, chunks, HV, DV, DK].
    """
    out = torch.empty_like(v)
    last = torch.empty_like(initial_state, dtype=torch.float32)
    within = []
    for row, (start, end) in enumerate(pairwise(cu_seqlens.tolist())):
        own = slice(start, end)
        state = initial_state[row].float()
        result, last[row], states = delta_rule.snapshots(
            q[0, own], k[0, own], v[0, own], g[0, own], beta[0, own], state
        )
        out[0, start:end] = result.to(v.dtype)
        within.append(states)
    return out, last, torch.cat(within)[None]


def track_mamba_states_if_needed(
    conv_states: Tensor,
    ssm_states: Tensor,
    cache_indices: Tensor,
    mamba_track_mask: Tensor,
    mamba_track_indices: Tensor,
    batch_size: int,
) -> None:
    """Copy the states of sequences [B] that SGLang's prefix tree wants to slots of its own."""
    wanted = mamba_track_mask[:batch_size]
    source, target = cache_indices[:batch_size][wanted], mamba_track_indices[:batch_size][wanted]
    conv_states[target] = conv_states[source]
    ssm_states[target] = ssm_states[source]


def fused_sigmoid_gating_delta_rule_update(
    *,
    A_log: Tensor,  # noqa: N803
    dt_bias: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    initial_state_source: Tensor,
    initial_state_indices: Tensor,
    **_: Any,
) -> Tensor:
    """One token a sequence [1, B, H, D]; states [slots, HV, DV, DK] change in place."""
    g, beta = fused_gdn_gating(A_log, a, b, dt_bias)
    slots = initial_state_indices.to(torch.int64)
    group = v.shape[2] // q.shape[2]
    queries, keys = (
        F.normalize(x[0].float(), dim=-1, eps=1e-12).repeat_interleave(group, dim=1) for x in (q, k)
    )
    states = initial_state_source[slots].float() * g[0].exp()[..., None, None]
    expected = torch.einsum("bhvk,bhk->bhv", states, keys)
    change = (v[0].float() - expected) * beta[0][..., None]
    states = states + change[..., None] * keys[..., None, :]
    initial_state_source[slots] = states.to(initial_state_source.dtype)
    out = torch.einsum("bhvk,bhk->bhv", states, queries) * q.shape[-1] ** -0.5
    return out.to(v.dtype)[None]
