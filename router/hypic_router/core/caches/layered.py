"""An immutable map that is cheap to change a little.

Knows nothing of segments. A change copies a small top layer only; when that layer has grown to
about the square root of the whole, both are folded into a new base.
"""

from collections.abc import Hashable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from math import isqrt
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

SMALLEST_FOLD = 64


@dataclass(frozen=True, slots=True)
class Layered(Generic[K, V]):
    """A map of ``K`` to ``V``; in ``top``, ``None`` hides what ``base`` holds."""

    base: Mapping[K, V] = field(default_factory=dict)
    top: Mapping[K, V | None] = field(default_factory=dict)

    def get(self, key: K) -> V | None:
        """The value of ``key``, or ``None``."""
        if key in self.top:
            return self.top[key]
        return self.base.get(key)

    def among(self, keys: AbstractSet[K]) -> dict[K, V]:
        """Those of ``keys`` that are in here, and their values."""
        # Asked of every engine for every request: most have none, and views find that out fastest.
        base, top = self.base, self.top
        if (not base or base.keys().isdisjoint(keys)) and (not top or top.keys().isdisjoint(keys)):
            return {}
        found = ((key, self.get(key)) for key in keys)
        return {key: value for key, value in found if value is not None}

    def with_changes(self, changes: Mapping[K, V | None]) -> "Layered[K, V]":
        """This map with ``changes`` applied; a value of ``None`` removes its key."""
        if not changes:
            return self
        top = {**self.top, **changes}
        if len(top) <= max(SMALLEST_FOLD, 4 * isqrt(len(self.base))):
            return Layered(self.base, top)
        return Layered(dict(_merged(self.base, top)), {})

    def items(self) -> Iterator[tuple[K, V]]:
        """All pairs, in no promised order."""
        return _merged(self.base, self.top)

    def __len__(self) -> int:
        hidden = sum(key in self.base for key in self.top)
        return len(self.base) - hidden + sum(value is not None for value in self.top.values())


def _merged(base: Mapping[K, V], top: Mapping[K, V | None]) -> Iterator[tuple[K, V]]:
    for key, value in base.items():
        if key not in top:
            yield key, value
    for key, changed in top.items():
        if changed is not None:
            yield key, changed
