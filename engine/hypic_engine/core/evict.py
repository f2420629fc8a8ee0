"""Who leaves the cache next.

Greedy-dual by size (Cao and Irani, 1997): an entry is worth what computing it again costs, times
how often it was used, per byte it occupies, on top of a floor that rises with each eviction, so
that what was once popular ages. Entries on probation leave before all others. Frees nothing.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Worth:
    """Sort key of eviction: the smallest leaves first."""

    kept: bool
    settled: bool
    value: float
    tie: int


def worth(
    *, n_tokens: int, n_bytes: int, n_uses: int, floor: float, tie: int, kept: bool = False
) -> Worth:
    """What an entry is worth now.

    Args:
        n_tokens: its length: the cost of computing it again.
        n_bytes: what it occupies in all pools.
        n_uses: requests that used it; 0 means that it is on probation.
        floor: value of the last entry that was evicted.
        kept: whether it leaves after all that are not.
        tie: a counter that grows with every use; the least recently used leaves first.
    """
    value = floor + max(n_uses, 1) * n_tokens / max(n_bytes, 1)
    return Worth(kept=kept, settled=kept or n_uses > 0, value=value, tie=tie)
