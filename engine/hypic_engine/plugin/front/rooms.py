"""A transfer room for each sample of a prompt, where prefill and decode are apart.

SGLang 0.5.14 sends the n samples of a prompt, and a first pass over it, in one room; the second
transfer then waits for ever. Both servers number the samples alike, so both find the same rooms.
"""

import itertools
from typing import Any

N_ROOMS = 1 << 63
# Odd and large: SGLang numbers the rooms of a batch in a row, which these must not meet.
STRIDE = 0x5851F42D4C957F2D


def room_of(room: int, n: int) -> int:
    """The room of a prompt's n-th transfer; the 0th has the prompt's own."""
    return (room + n * STRIDE) % N_ROOMS


class Rooms:
    """Hooks on ``TokenizerManager``."""

    def number(self, tokenized: Any, *args: object, **kwargs: object) -> None:
        """After ``_create_tokenized_object``: copies of a prompt share one counter."""
        if getattr(tokenized, "bootstrap_room", None) is not None:
            tokenized.hypic_sent = itertools.count()

    def assign(self, manager: object, tokenized: Any) -> None:
        """Before ``_send_one_request``: take the next room."""
        sent = vars(tokenized).pop("hypic_sent", None)
        if sent is not None:
            tokenized.bootstrap_room = room_of(tokenized.bootstrap_room, next(sent))
