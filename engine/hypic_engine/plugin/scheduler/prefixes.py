"""SGLang's own tree of prefixes, for prompts without segments; or none, when it was switched off.

Tells what its least worthy leaf is worth on the scale of segments. Decides nothing.
"""

from typing import Any

from sglang.srt.mem_cache.base_prefix_cache import EvictParams
from sglang.srt.mem_cache.mamba_radix_cache import MambaRadixCache, TreeNode

from ...core import evict


class Prefixes:
    """A stock tree and what its leaves are worth.

    Attributes:
        tree: SGLang's, or None.
    """

    def __init__(self, tree: MambaRadixCache | None, *, token_bytes: int, state_bytes: int) -> None:
        self.tree: Any = tree
        self._token_bytes = token_bytes
        self._state_bytes = state_bytes
        self._ages = evict.Ages()

    @classmethod
    def of(cls, context: Any, *, token_bytes: int) -> "Prefixes":
        """As SGLang's flags want it: its tree with its strategy, or none."""
        if context.disable_radix_cache:
            return cls(None, token_bytes=token_bytes, state_bytes=0)
        states = context.params.req_to_token_pool.mamba_pool
        state_bytes = states.mamba_cache.mem_usage_bytes() // (states.size + 1)
        tree = MambaRadixCache(context.params)
        return cls(tree, token_bytes=token_bytes, state_bytes=int(state_bytes))

    @property
    def n_evictable_tokens(self) -> int:
        """Tokens of prefixes that no request uses."""
        return self.tree.full_evictable_size() if self.tree is not None else 0

    @property
    def n_protected_tokens(self) -> int:
        """Tokens of prefixes that a request uses."""
        return self.tree.full_protected_size() if self.tree is not None else 0

    def least_worth(self, floor: float) -> evict.Worth | None:
        """What the next leaf to leave is worth, or None.

        Args:
            floor: of the segments, now.
        """
        if self.tree is None or not self.tree.full_evictable_size():
            return None
        self._ages.note(TreeNode.last_access_time_counter_float, floor)
        leaves = self.tree.full_lru_list
        leaf = leaves.get_leaf_lru_no_lock()
        if not leaves.in_list(leaf):
            return None
        n_tokens = len(leaf.value)
        return evict.worth(
            n_tokens=n_tokens,
            n_bytes=n_tokens * self._token_bytes + self._state_bytes,
            n_uses=1,
            floor=self._ages.floor_at(leaf.last_access_time),
            tie=0,
        )

    def evict_one(self) -> int:
        """Free the least recently used leaf; how many tokens that were."""
        n_tokens: int = self.tree.evict(EvictParams(num_tokens=1)).num_tokens_evicted
        return n_tokens
