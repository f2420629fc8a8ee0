"""Moved copies of segments, shared by the running requests that place a segment alike.

A copy depends on the entry and its place alone, is only read, and lives until its last reader ends.
Slots are opaque; allocates and frees nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Place = tuple[str, int]
"""Key of an entry, and the position at which its segment starts."""


@dataclass(slots=True, eq=False)
class Copy:
    """One segment's interior at one place.

    Attributes:
        place: of which entry, and where.
        slots: where its keys and values lie; opaque here.
        n_tokens: how many.
        n_readers: requests that read it.
    """

    place: Place
    slots: Any
    n_tokens: int
    n_readers: int = 1


class Copies:
    """Copies with their readers."""

    def __init__(self) -> None:
        self._copies: dict[Place, Copy] = {}
        self.n_tokens = 0

    def __iter__(self) -> Iterator[Copy]:
        return iter(self._copies.values())

    def __contains__(self, place: Place) -> bool:
        return place in self._copies

    def shared(self, place: Place) -> Copy | None:
        """The copy at this place with one more reader, or None when there is none."""
        copy = self._copies.get(place)
        if copy is not None:
            copy.n_readers += 1
        return copy

    def add(self, place: Place, slots: Any, n_tokens: int) -> Copy:
        """A new copy with one reader.

        Raises:
            ValueError: there is one at this place.
        """
        if place in self._copies:
            raise ValueError(f"{place} has a copy")
        copy = self._copies[place] = Copy(place, slots, n_tokens)
        self.n_tokens += n_tokens
        return copy

    def release(self, copy: Copy) -> bool:
        """One reader less; whether it was the last, so that the slots are free.

        Raises:
            RuntimeError: nobody reads it.
        """
        if copy.n_readers == 0:
            raise RuntimeError(f"the copy at {copy.place} was released more often than shared")
        copy.n_readers -= 1
        if copy.n_readers:
            return False
        del self._copies[copy.place]
        self.n_tokens -= copy.n_tokens
        return True
