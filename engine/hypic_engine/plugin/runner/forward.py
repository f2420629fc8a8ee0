"""Hooks on SGLang's forward pass: true positions, moved keys, one sequence per run.

Computes nothing itself: full attention is the stock backend over a virtual batch, linear attention
is the model's family. Batches without a plan take the stock path.
"""

from collections.abc import Callable
from typing import Any

import torch
from sglang.srt.layers.attention.hybrid_linear_attn_backend import HybridLinearAttnBackend
from sglang.srt.mem_cache.memory_pool import KVWriteLoc

from ..models import families
from ..settings import Settings
from . import rotary
from .family import Inputs, LinearAttention
from .gdn import GatedDelta
from .keys import CachedKeys
from .lightning import Lightning
from .memory import Memory
from .plan import ForwardPlan


class Forward:
    """The plan of the batch that runs, carried around SGLang's copies of the batch."""

    def __init__(self, settings: Settings, memory: Memory) -> None:
        self._settings = settings
        self._memory = memory
        self.plan: ForwardPlan | None = None

    def position(
        self, forward_batch: Any, cls: type, batch: Any, model_runner: Any, *args: object
    ) -> None:
        """After ``ForwardBatch.init_new``: positions are the true ones."""
        plan = getattr(batch, "hypic_plan", None)
        if plan is None or not forward_batch.forward_mode.is_extend():
            return
        batch.hypic_plan = None
        forward_batch.hypic_plan = plan
        forward_batch.positions = plan.positions.to(forward_batch.positions.dtype)
        if forward_batch.mrope_positions is not None:
            forward_batch.mrope_positions = plan.positions.repeat(3, 1)

    def run(
        self,
        original: Callable[..., Any],
        runner: Any,
        forward_batch: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Around ``ModelRunner._forward_raw``: SGLang drops attributes when it copies a batch."""
        self.plan = getattr(forward_batch, "hypic_plan", None)
        try:
            return original(runner, forward_batch, *args, **kwargs)
        finally:
            self.plan = None

    def eager(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Around ``PrefillCudaGraphRunner.can_run_graph``: a planned batch runs eagerly."""
        return False if self.plan is not None else original(*args, **kwargs)

    def wrap(self, backend: Any, runner: Any, *args: object) -> Any:
        """After ``attn_backend_wrapper``: put ours in front of the stock hybrid backend."""
        if not isinstance(backend, HybridLinearAttnBackend):
            return None
        return SegmentBackend(backend, self, runner, self._memory, self._settings)


def _make_room(backend: Any, n_rows: int) -> None:
    """Let a backend index as many rows as a virtual batch may have.

    SGLang 0.5.14 sizes the row offsets of its Triton backend for running requests; a request of
    many segments has many rows. Called before any graph is captured.
    """
    for name in ("kv_indptr", "qo_indptr", "mask_indptr", "window_kv_indptr"):
        offsets = getattr(backend, name, None)
        if isinstance(offsets, torch.Tensor) and offsets.numel() <= n_rows:
            setattr(backend, name, offsets.new_zeros(n_rows + 1))


def _linear(stock: Any, runner: Any, memory: Memory, settings: Settings) -> LinearAttention:
    """The linear layers of the model's family."""
    if families.of(runner.model_config.hf_config.architectures) is families.GDN:
        return GatedDelta(stock, memory.pool, composes=settings.mode.composes)
    (first, *_) = runner.req_to_token_pool.mamba_map
    return Lightning(
        stock,
        memory.pool,
        rotary.of_layer(runner.model, first),
        n_positions=runner.model_config.context_len,
    )


class SegmentBackend(HybridLinearAttnBackend):  # type: ignore[misc]
    """SGLang's hybrid backend that also builds prompts from cached segments."""

    def __init__(
        self,
        stock: HybridLinearAttnBackend,
        forward: Forward,
        runner: Any,
        memory: Memory,
        settings: Settings,
    ) -> None:
        super().__init__(stock.full_attn_backend, stock.linear_attn_backend, stock.full_attn_layers)
        self._forward = forward
        self._virtual: Any = None
        n_rows = runner.req_to_token_pool.size * (settings.max_segments + 1)
        _make_room(stock.full_attn_backend, n_rows)
        self._linear = _linear(stock.linear_attn_backend, runner, memory, settings)
        self._keys = CachedKeys(self.token_to_kv_pool, self.full_attn_layers, runner.model)

    def init_forward_metadata(self, forward_batch: Any) -> None:
        """Stock metadata, for full attention over the virtual batch; keys move first."""
        # Lightning's backend forgets this in SGLang 0.5.14: a slot would start with an old state.
        self.linear_attn_backend._execute_deferred_mamba_cow_and_clear(forward_batch)  # noqa: SLF001
        plan = self._forward.plan
        if plan is None:
            super().init_forward_metadata(forward_batch)
            return
        self.linear_attn_backend.init_forward_metadata(forward_batch)
        plan.aim_tracking(self.linear_attn_backend, forward_batch)
        self._virtual = plan.virtual_batch(forward_batch)
        self.full_attn_backend.init_forward_metadata(self._virtual)
        if plan.moves is not None:
            self._keys.move(plan.moves)

    def forward_extend(  # noqa: PLR0917 - SGLang's signature
        self,
        layer: Any,
        forward_batch: Any,
        save_kv_cache: bool = True,  # noqa: FBT001, FBT002
        q: Any = None,
        k: Any = None,
        v: Any = None,
        mixed_qkv: Any = None,
        a: Any = None,
        b: Any = None,
        **kwargs: Any,
    ) -> Any:
        """One layer of a prefill batch; arguments as in the stock backend."""
        plan = self._forward.plan
        if plan is None:
            return super().forward_extend(
                layer, forward_batch, save_kv_cache, q, k, v, mixed_qkv, a, b, **kwargs
            )
        if not self._is_full_attn(layer, kwargs.get("layer_id")):
            return self._linear.extend(plan, layer, Inputs(mixed_qkv, a, b, q, k, v))
        self._virtual.out_cache_loc = forward_batch.out_cache_loc
        if save_kv_cache:  # all of the layer before any of it is read
            keys = k.view(-1, layer.tp_k_head_num, layer.qk_head_dim)
            values = v.view(-1, layer.tp_v_head_num, layer.v_head_dim)
            where = KVWriteLoc(forward_batch.out_cache_loc, None)
            self.token_to_kv_pool.set_kv_buffer(layer, where, keys, values)
        return self.full_attn_backend.forward_extend(
            q, k, v, layer, self._virtual, save_kv_cache=False, **kwargs
        )
