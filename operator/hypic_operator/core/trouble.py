"""Something that keeps a pod from being ready, in the words of whoever knows.

Does not look for it; `unready` does. Does not decide what follows from it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

# What the scheduler says of nodes that would do if they were not full.
_NO_ROOM = re.compile(
    r"Insufficient |Too many pods|cannot allocate all claims|anti-affinity|free ports"
)
_MESSAGE_LIMIT = 400


class Rank(IntEnum):
    """Which of several troubles is told: the highest."""

    LOADING = 0
    STARTING = 1
    NOT_ANSWERING = 2
    UNSCHEDULABLE = 3
    CREATE = 4
    IMAGE = 5
    CRASH = 6


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a pod is not ready.

    Attributes:
        reason: CamelCase word, the reason of a condition.
        message: for people.
        rank: how telling it is beside others.
    """

    reason: str
    message: str
    rank: Rank

    @property
    def lasting(self) -> bool:
        """Whether it stays until somebody acts; loading and starting end by themselves."""
        return self.rank > Rank.STARTING

    @property
    def crowded(self) -> bool:
        """Whether it would have room if another engine went."""
        return self.rank is Rank.UNSCHEDULABLE and _NO_ROOM.search(self.message) is not None


def worst(troubles: Iterable[Trouble | None]) -> Trouble | None:
    """The most telling one."""
    present = [trouble for trouble in troubles if trouble is not None]
    return max(present, key=lambda trouble: trouble.rank, default=None)


def quota(message: str, name: str) -> Trouble:
    """Pods of a StatefulSet that the API server does not let be made."""
    reason = "QuotaExceeded" if "exceeded quota" in message else "PodsRefused"
    return Trouble(reason, f"{name}: {short(message)}", Rank.CREATE)


def held(message: str, name: str) -> Trouble:
    """A pod that its kubelet cannot start, in the words of an event."""
    volume = "olume" in message
    reason = "VolumeNotMounted" if volume else "SandboxNotCreated"
    return Trouble(reason, f"{name} cannot start: {short(message)}", Rank.CREATE)


def short(text: str) -> str:
    """One line of a length that a status can bear."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _MESSAGE_LIMIT else f"{flat[: _MESSAGE_LIMIT - 1]}…"
