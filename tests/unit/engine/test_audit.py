"""The audit in short, and that it finds faults where there are some."""

import pytest

from hypic_engine.core.index import Index

from ...audit.world import World

N_OPERATIONS = 20_000


def run(index: Index, n_operations: int = N_OPERATIONS) -> None:
    world = World(1, index)
    for _ in range(n_operations):
        world.step()
    world.recount()


def test_random_use_leaves_no_fault():
    run(Index())


class ForgetsReaders(Index):
    """Lets a pinned entry go."""

    def unpin(self, entry):
        super().unpin(entry)
        if entry.n_pins:
            super().unpin(entry)


class LosesTokens(Index):
    """Does not count what is evicted."""

    def _drop(self, entry):
        super()._drop(entry)
        self.n_tokens += 1


class EvictsPinned(Index):
    """Looks at worth alone."""

    def least_worth(self):
        worth = super().least_worth()
        for entry in self:
            entry.n_pins = 0
        return worth


class KeepsTwo(Index):
    """Returns the same victim twice."""

    def evicted(self, **asked):
        victims = super().evicted(**asked)
        return victims + victims[:1]


@pytest.mark.parametrize("fault", [ForgetsReaders, LosesTokens, EvictsPinned, KeepsTwo])
def test_a_faulty_index_is_found_out(fault):
    with pytest.raises((AssertionError, RuntimeError)):
        run(fault())
