"""What SGLang 0.5.14 lacks on CPUs for Bailing and Ring models, put where it looks for it.

Rotary embeddings of every kind, latent attention without a compiled kernel, Lightning attention in
plain torch. Never used when an accelerator is there.
"""

from itertools import pairwise
from typing import Any

from sglang.srt.layers import rotary_embedding
from sglang.srt.layers.attention.linear import seg_la
from sglang.srt.models import bailing_moe_linear, deepseek_v2
from sglang.srt.models.deepseek_common import attention_backend_handler
from torch import Tensor

from ...ops import lightning


def install() -> None:
    """Make SGLang's CPU path for these models complete."""
    for module in (bailing_moe_linear, deepseek_v2):
        module.get_rope_wrapper = _rope
    rotary_embedding.RotaryEmbedding.forward_cuda = rotary_embedding.RotaryEmbedding.forward_native
    handler = attention_backend_handler
    # The other way, keys and values of full width, reads what latent caches do not hold.
    handler.AttentionBackendRegistry.register("torch_native", handler._dispatch_mla_subtype)  # noqa: SLF001
    seg_la.seg_la_fwd = _seg_la


def _rope(*args: Any, device: object = None, **kwargs: Any) -> Any:  # noqa: ARG001
    """Reference: ``get_rope_wrapper``, which knows one kind of scaling on CPUs."""
    return rotary_embedding.get_rope(*args, **kwargs)


def _seg_la(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    s: Tensor,
    decay_scales: Tensor,
    meta: Any,
    **_: Any,
) -> Tensor:
    """Packed sequences [N, H, D]; states [slots, H, DK, DV] change in place."""
    out = v.new_empty(v.shape)
    slots, seeded = meta.s_offsets.tolist(), meta.s_scales.tolist()
    for row, (start, end) in enumerate(pairwise(meta.q_offsets.tolist())):
        own = slice(start, end)
        state = s[slots[row]].float() * float(seeded[row])
        slope = decay_scales.flatten()
        result, state = lightning.chunked(q[own], k[own], v[own], slope, state)
        out[own], s[slots[row]] = result.to(out.dtype), state.to(s.dtype)
    return out
