"""The check that the tests' engines run with finds what it is for."""

from types import SimpleNamespace

import pytest
import torch

from hypic_engine.core.entry import Entry
from hypic_engine.core.index import Index
from hypic_engine.core.slots import Slots
from hypic_engine.plugin.scheduler import ownership


def cache(*, free, prefixes=(), copies=(), states=None):
    """Two entries of slots 1 to 4 in a pool of ten, beside what is given."""
    index, operators = Index(), Slots(2)
    for name, slots in (("a", [1, 2]), ("b", [3, 4])):
        index.insert(Entry(name, b"", 2, 16, torch.tensor(slots), operators.alloc()))
    owned = [entry.slots for entry in index] + [torch.tensor(list(prefixes), dtype=torch.int64)]
    pages = torch.tensor(free)
    return SimpleNamespace(
        token_to_kv_pool_allocator=SimpleNamespace(
            size=10, free_pages=pages[:2], release_pages=pages[2:]
        ),
        all_values_flatten=lambda: torch.cat(owned),
        copies=SimpleNamespace(slots=lambda: torch.tensor(list(copies), dtype=torch.int64)),
        supports_mamba=lambda: states is not None,
        req_to_token_pool=SimpleNamespace(
            mamba_allocator=SimpleNamespace(size=4, free_slots=torch.tensor([1, 2]))
        ),
        all_mamba_values_flatten=lambda: torch.tensor(states),
        store=SimpleNamespace(index=index, pool=SimpleNamespace(slots=operators)),
    )


def test_slots_with_one_owner_or_none_pass():
    ownership.check(cache(free=[8, 9, 10], prefixes=[5, 6], copies=[7], states=[3]))


@pytest.mark.parametrize(
    "wrong",
    [
        {"free": [4, 9, 10]},
        {"free": [9, 9, 10]},
        {"free": [8, 9, 10], "prefixes": [10]},
        {"free": [8, 9, 10], "prefixes": [5], "copies": [5]},
        {"free": [8, 9, 10], "states": [2]},
    ],
)
def test_a_slot_that_is_free_and_owned_or_owned_twice_is_named(wrong):
    with pytest.raises(AssertionError, match="slots"):
        ownership.check(cache(**wrong))


def test_an_operator_slot_that_is_free_and_owned_is_named():
    broken = cache(free=[8, 9, 10])
    broken.store.pool.slots.free(1)
    with pytest.raises(AssertionError, match="operator slots"):
        ownership.check(broken)
