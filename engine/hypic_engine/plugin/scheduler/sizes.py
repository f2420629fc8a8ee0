"""What SGLang counts of a prefix cache: for admission, eviction and its leak check.

A tree of states makes SGLang 0.5.14 ask for the ``full_`` and ``mamba_`` sizes. Of a hybrid model
without one it counts nothing as evictable in its leak check
(``SchedulerPoolStatsObserver._get_mamba_token_info``), but does when it admits; hence both kinds.
Changes nothing.
"""

import torch
from sglang.srt.mem_cache.base_prefix_cache import BasePrefixCache
from torch import Tensor

from .prefixes import Prefixes
from .store import Store


class Sizes(BasePrefixCache):  # type: ignore[misc]
    """Sizes of entries and prefixes together.

    Attributes:
        store: the entries.
        prefixes: the tree, if there is one.
    """

    store: Store
    prefixes: Prefixes

    def supports_mamba(self) -> bool:
        """Whether there is a tree, which then owns the states of the requests it is given."""
        return self.prefixes.tree is not None

    def evictable_size(self) -> int:
        """Tokens that can be freed, without a tree."""
        return self.store.index.n_evictable_tokens

    def protected_size(self) -> int:
        """All tokens that entries own, without a tree."""
        return self.store.index.n_tokens

    def full_evictable_size(self) -> int:
        """Tokens that can be freed."""
        return self.store.index.n_evictable_tokens + self.prefixes.n_evictable_tokens

    def full_protected_size(self) -> int:
        """Tokens of entries and prefixes that somebody uses."""
        return self.store.index.n_pinned_tokens + self.prefixes.n_protected_tokens

    def mamba_evictable_size(self) -> int:
        """States of prefixes that no request uses."""
        return int(self.prefixes.tree.mamba_evictable_size())

    def mamba_protected_size(self) -> int:
        """States of prefixes that a request uses."""
        return int(self.prefixes.tree.mamba_protected_size())

    def total_size(self) -> int:
        """All tokens that entries and prefixes own."""
        return self.full_evictable_size() + self.full_protected_size()

    def all_values_flatten(self) -> Tensor:
        """Every token slot that entries and prefixes own."""
        owned = [entry.slots for entry in self.store.index]
        if self.prefixes.tree is not None:
            owned.append(self.prefixes.tree.all_values_flatten())
        return torch.cat(owned).to(torch.int64) if owned else torch.empty(0, dtype=torch.int64)

    def all_mamba_values_flatten(self) -> Tensor:
        """Every state slot that prefixes own."""
        states: Tensor = self.prefixes.tree.all_mamba_values_flatten()
        return states

    def sanity_check(self) -> None:
        """SGLang's check of an idle tree."""
        self.prefixes.tree.sanity_check()

    def available_and_evictable_str(self) -> str:
        """What SGLang says when an allocation failed."""
        free = self.token_to_kv_pool_allocator.available_size()
        return f"Tokens: {free} free, {self.full_evictable_size()} evictable\n"

    def pretty_print(self) -> None:
        """One line a segment would be too much; the sizes are in the log already."""
