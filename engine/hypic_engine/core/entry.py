"""What the cache holds of one segment. Changes nothing by itself: `index` keeps its counts."""

from dataclasses import dataclass, field
from typing import Any

from .evict import Worth


@dataclass(slots=True, eq=False)
class Entry:
    """One cached segment.

    Attributes:
        key: the engine's key of the segment.
        ids: its token ids as bytes, compared on every hit.
        n_tokens: its length.
        n_bytes: what it occupies in all pools.
        slots: where its keys and values lie; opaque here.
        operator: where its state, transition and convolution tail lie; opaque here.
        digests: request digests under which clients reach it.
        n_uses: requests that took it from the cache.
        n_pins: counted readers; while above 0 the entry stays.
        salt: of the requests that find it.
        kept: whether somebody asked that it leave last.
    """

    key: str
    ids: bytes
    n_tokens: int
    n_bytes: int
    slots: Any
    operator: Any
    digests: set[str] = field(default_factory=set)
    n_uses: int = 0
    n_pins: int = 0
    salt: str = ""
    kept: bool = False
    worth: Worth | None = None
