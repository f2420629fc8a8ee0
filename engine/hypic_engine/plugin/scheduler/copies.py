"""Moved copies of the prompts that run: shared where there are some, made where there are none.

Takes its slots from whoever allocates a batch and gives them back to SGLang's allocator with the
last reader. Who shares what is `core.copies`.
"""

from typing import Any

import torch
from torch import Tensor

from ...core.copies import Copies
from ..prompts import Prompt


class MovedCopies:
    """Copies by place, and the allocator that their slots come from."""

    def __init__(self, allocator: Any) -> None:
        self._allocator = allocator
        self._copies = Copies()

    @property
    def n_tokens(self) -> int:
        """Tokens of all copies."""
        return self._copies.n_tokens

    def slots(self) -> Tensor:
        """The slots of all copies."""
        return torch.cat(
            [torch.empty(0, dtype=torch.int64), *(c.slots.cpu() for c in self._copies)]
        )

    def n_to_move(self, *prompts: Prompt) -> int:
        """Tokens of the copies that these prompts read together and nobody has yet."""
        wanted = {
            prompt.place(i): interior.length
            for prompt in prompts
            for i, interior in enumerate(prompt.layout.interiors)
        }
        return sum(n for place, n in wanted.items() if place not in self._copies)

    def take(self, prompts: list[Prompt], slots: Tensor) -> None:
        """Share what is there and make the rest of these slots, `n_to_move` in number."""
        for prompt in prompts:
            copies, moves = [], []
            for i, interior in enumerate(prompt.layout.interiors):
                copy = self._copies.shared(prompt.place(i))
                moves.append(copy is None)
                if copy is None:
                    own, slots = slots[: interior.length], slots[interior.length :]
                    copy = self._copies.add(prompt.place(i), own, interior.length)
                copies.append(copy)
            prompt.copies, prompt.moves = tuple(copies), tuple(moves)

    def drop(self, prompt: Prompt) -> None:
        """The prompt reads no longer; what nobody reads is free."""
        for copy in prompt.copies:
            if self._copies.release(copy):
                self._allocator.free(copy.slots)
        prompt.copies, prompt.moves = (), ()
