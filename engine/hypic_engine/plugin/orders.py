"""What HTTP processes order the cache to do, and what became of it.

Orders travel as SGLang's own do, for example a flush: one queue with the requests, and broadcast to
all ranks, which therefore obey at the same point. Obeys nothing; that is `scheduler.keeping`.
"""

from dataclasses import dataclass
from enum import StrEnum

from sglang.srt.managers.io_struct import BaseReq

from ..core.selection import Selection


class Action(StrEnum):
    """What is done with the selected segments."""

    PIN = "pin"
    UNPIN = "unpin"
    EVICT = "evict"


@dataclass
class Order(BaseReq):  # type: ignore[misc]
    """Do this with those."""

    action: Action
    selection: Selection


@dataclass
class Outcome(BaseReq):  # type: ignore[misc]
    """What was done.

    Attributes:
        n_segments: segments it was done with.
        n_tokens: their length together.
        n_in_use: selected segments that running requests read, and that were left alone.
        n_pinned_tokens: what is pinned now.
        limit_tokens: how much may be pinned.
        refused: why nothing was done; empty when it was.
    """

    n_segments: int
    n_tokens: int
    n_in_use: int
    n_pinned_tokens: int
    limit_tokens: int
    refused: str = ""
