"""Puts `kernels` where SGLang 0.5.14 looks for compiled CPU kernels and Triton norms.

The CUDA build of ``sgl_kernel`` cannot be loaded without CUDA, so its name is free. Installs once;
never used when an accelerator is there.
"""

import importlib.machinery
import sys
import types
from typing import Any

import torch
from torch import Tensor

from ...errors import HostError
from . import kernels


class _Missing(types.ModuleType):
    """A module whose unknown names can be imported and raise only when called."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def missing(*_: Any, **__: Any) -> None:
            raise HostError(f"{self.__name__}.{name} exists only with an accelerator")

        return missing


def _missing(name: str) -> _Missing:
    module = _Missing(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    return module


def install() -> None:
    """Make SGLang's CPU path for gated delta networks complete."""
    if isinstance(sys.modules.get("sgl_kernel"), _Missing):
        return
    package, mamba = _missing("sgl_kernel"), _missing("sgl_kernel.mamba")
    package.__path__ = []
    # Bailing's module imports a dequantizer from here, and SGLang has no other on CPUs.
    for name in ("vllm", "vllm._custom_ops"):
        sys.modules.setdefault(name, _missing(name))
    names = {
        "causal_conv1d_fn_cpu": kernels.causal_conv1d_fn,
        "causal_conv1d_update_cpu": kernels.causal_conv1d_update,
        "chunk_gated_delta_rule_cpu": kernels.chunk_gated_delta_rule,
    }
    vars(mamba).update(names)
    vars(package)["mamba"] = mamba
    sys.modules.update({"sgl_kernel": package, "sgl_kernel.mamba": mamba})
    namespace: Any = torch.ops.sgl_kernel
    namespace.fused_gdn_gating_cpu = kernels.fused_gdn_gating
    namespace.fused_sigmoid_gating_delta_rule_update_cpu = (
        kernels.fused_sigmoid_gating_delta_rule_update
    )
    _replace_triton_norms()
    _allow_tracked_states()


def _allow_tracked_states() -> None:
    """Let SGLang's prefix tree keep states as it does on accelerators (``extra_buffer``)."""
    from sglang.srt.layers.attention import hybrid_linear_attn_backend  # noqa: PLC0415
    from sglang.srt.managers import schedule_batch  # noqa: PLC0415
    from sglang.srt.server_args import ServerArgs  # noqa: PLC0415

    ServerArgs._validate_mamba_extra_buffer = _accept  # noqa: SLF001 - it asks for the device only
    hybrid_linear_attn_backend.track_mamba_states_if_needed = kernels.track_mamba_states_if_needed
    schedule_batch.set_mamba_track_indices_from_reqs = _set_track_indices
    torch.Tensor.pin_memory = _not_pinned  # there is no device to pin it for


def _accept(self: Any, model_arch: str) -> None:
    """Reference: ``ServerArgs._validate_mamba_extra_buffer``."""


def _set_track_indices(batch: Any) -> None:
    """Reference: ``sglang.srt.managers.schedule_batch.set_mamba_track_indices_from_reqs``."""
    slots = batch.req_to_token_pool.req_index_to_mamba_ping_pong_track_buffer_mapping
    turns = torch.tensor([req.mamba_next_track_idx for req in batch.reqs])
    batch.mamba_track_indices = slots[batch.req_pool_indices, turns].to(torch.int64)


def _not_pinned(self: Tensor, *_: Any) -> Tensor:
    return self


def _replace_triton_norms() -> None:
    from sglang.srt.layers.attention.fla import (  # noqa: PLC0415 - after the stand-ins
        fused_norm_gate,
        layernorm_gated,
    )

    layernorm_gated.layernorm_fn = _gated_norm
    fused_norm_gate.FusedRMSNormGated.forward = _fused_norm_gate
    from sglang.srt.layers import elementwise  # noqa: PLC0415

    elementwise.fused_gate_sigmoid_mul_add = _add_gated
    elementwise.fused_sigmoid_mul = _gated_attention


def _gated_norm(  # noqa: PLR0917 - SGLang's signature
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    z: Tensor | None = None,
    eps: float = 1e-6,
    group_size: int | None = None,
    norm_before_gate: bool = True,  # noqa: FBT001, FBT002
    is_rms_norm: bool = False,  # noqa: FBT001, FBT002
    activation: str = "swish",
) -> Tensor:
    assert is_rms_norm
    assert norm_before_gate
    groups = x.float().unflatten(-1, (-1, group_size or x.shape[-1]))
    normed = torch.nn.functional.rms_norm(groups, groups.shape[-1:], eps=eps).flatten(-2)
    normed = normed * weight.float()
    if bias is not None:
        normed = normed + bias.float()
    return (normed if z is None else normed * _gate(z, activation)).to(x.dtype)


def _fused_norm_gate(self: Any, x: Tensor, g: Tensor, **_: Any) -> Tensor:
    return _gated_norm(
        x, self.weight, None, g, self.eps, is_rms_norm=True, activation=self.activation
    )


def _gate(z: Tensor, activation: str) -> Tensor:
    gate = z.float()
    return gate.sigmoid() if activation == "sigmoid" else torch.nn.functional.silu(gate)


def _add_gated(
    hidden_states: Tensor, gate_weight: Tensor, shared_output: Tensor, final_hidden_states: Tensor
) -> None:
    """Reference: ``sglang.srt.layers.elementwise.fused_gate_sigmoid_mul_add``."""
    gate = (hidden_states.float() @ gate_weight.float().reshape(-1)).sigmoid()[:, None]
    final_hidden_states.add_((gate * shared_output.float()).to(final_hidden_states.dtype))


def _gated_attention(attn_output: Tensor, gate: Tensor, inplace: bool = False) -> Tensor:  # noqa: FBT001, FBT002
    """Reference: ``sglang.srt.layers.elementwise.fused_sigmoid_mul``."""
    gated = attn_output * gate.sigmoid().reshape(attn_output.shape)
    return attn_output.copy_(gated) if inplace else gated
