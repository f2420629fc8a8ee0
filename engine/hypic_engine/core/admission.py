"""Whether a prompt's cached segments and moved copies fit, now or ever.

Counts tokens and operators; allocates nothing. A waiting prompt reserves all it needs or nothing,
so that two prompts can never hold half of each other's memory.
"""

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Need:
    """What a prompt will still allocate.

    Attributes:
        n_tokens: key/value slots: missing segments, moved copies, computed tokens, new tokens.
        n_operators: operators of missing segments.
    """

    n_tokens: int
    n_operators: int


@dataclass(frozen=True, slots=True)
class Room:
    """What there is: free plus evictable, and what others have reserved of it."""

    n_tokens: int
    n_operators: int
    n_reserved_tokens: int = 0


class Verdict(Enum):
    """What to do with a prompt."""

    GO = "go"
    WAIT = "wait"


def verdict(need: Need, room: Room) -> Verdict:
    """Whether to reserve for this prompt now."""
    n_tokens = room.n_tokens - room.n_reserved_tokens
    fits = need.n_tokens <= n_tokens and need.n_operators <= room.n_operators
    return Verdict.GO if fits else Verdict.WAIT


def never_fits(need: Need, capacity: Room) -> str | None:
    """Why a prompt cannot fit even into an empty cache, or None when it can."""
    if need.n_tokens > capacity.n_tokens:
        return (
            f"the prompt needs {need.n_tokens} tokens of KV memory for its segments and their "
            f"moved copies; this server has {capacity.n_tokens}"
        )
    if need.n_operators > capacity.n_operators:
        return (
            f"the prompt has {need.n_operators} segments to cache; this server has room for "
            f"{capacity.n_operators} (--pic-memory-gib)"
        )
    return None
