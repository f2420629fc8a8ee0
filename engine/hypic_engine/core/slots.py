"""Numbered places of a pool: which are free, which are taken. Does not know by whom."""


class Slots:
    """Slots 1 to n; 0 is never handed out."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.clear()

    @property
    def n_free(self) -> int:
        """Slots that nobody owns."""
        return len(self._free)

    @property
    def free_ones(self) -> tuple[int, ...]:
        """The slots that nobody owns."""
        return tuple(self._free)

    def alloc(self) -> int | None:
        """A slot, or None when all are taken."""
        if not self._free:
            return None
        slot = self._free.pop()
        self._taken.add(slot)
        return slot

    def free(self, slot: int) -> None:
        """Give a slot back.

        Raises:
            RuntimeError: nobody owns it.
        """
        if slot not in self._taken:
            raise RuntimeError(f"slot {slot} of {self.n} was freed but not taken")
        self._taken.remove(slot)
        self._free.append(slot)

    def clear(self) -> None:
        """Give all slots back."""
        self._free = list(range(self.n, 0, -1))
        self._taken: set[int] = set()

    def check_integrity(self, owned: set[int]) -> None:
        """Recount.

        Args:
            owned: every slot that somebody owns.

        Raises:
            AssertionError: a slot is both free and owned, or neither, or free twice.
        """
        free = set(self._free)
        assert len(free) == len(self._free)
        assert self._taken == owned
        assert free.isdisjoint(owned)
        assert len(free) + len(owned) == self.n
