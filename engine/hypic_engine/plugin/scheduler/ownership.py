"""A check for debugging: every slot has one owner, or is free, and never both.

Recounts whole pools, so it is switched on by a variable (`settings.CHECK_VARIABLE`) and meant for
tests. Repairs nothing.
"""

from typing import Any

import torch
from torch import Tensor


def check(cache: Any) -> None:
    """Recount what entries, prefixes and moved copies own against what is free.

    Raises:
        AssertionError: names the pool and some of the slots.
    """
    allocator = cache.token_to_kv_pool_allocator
    free = torch.cat([allocator.free_pages, allocator.release_pages])
    owned = torch.cat([cache.all_values_flatten().cpu(), cache.copies.slots()])
    _separate("token", allocator.size, free, owned)
    if cache.supports_mamba():
        states = cache.req_to_token_pool.mamba_allocator
        _separate("state", states.size, states.free_slots, cache.all_mamba_values_flatten())
    operators = torch.tensor([entry.operator for entry in cache.store.index], dtype=torch.int64)
    slots = cache.store.pool.slots
    _separate("operator", slots.n, torch.tensor(slots.free_ones, dtype=torch.int64), operators)
    cache.store.index.check_integrity()


def _separate(pool: str, size: int, free: Tensor, owned: Tensor) -> None:
    counts = torch.zeros(size + 1, dtype=torch.int64)
    for slots in (free, owned):
        slots_cpu = slots.to("cpu", torch.int64)
        counts.index_add_(0, slots_cpu, torch.ones_like(slots_cpu))
    twice = counts.gt(1).nonzero().flatten().tolist()
    assert not twice, f"{pool} slots {twice[:8]} are free and owned, or owned twice"
