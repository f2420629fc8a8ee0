"""Whether a lease may be taken: by a clock that never goes back, never by the times in it.

Does not read or write leases; the shell's `leader` does.
"""

from dataclasses import dataclass, replace

DURATION_S = 15.0
RENEW_EVERY_S = 2.0
RENEW_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Seen:
    """A lease as it was last read.

    Attributes:
        version: changes with every renewal.
        holder: who has it; empty for nobody.
        duration_s: how long it is the holder's without a renewal.
        since_s: when this version was first seen, on a clock that never goes back.
    """

    version: str
    holder: str
    duration_s: float
    since_s: float


def seen(before: Seen | None, now: Seen) -> Seen:
    """What is known after reading it again: a version that stays is as old as it was."""
    if before is not None and before.version == now.version:
        return replace(now, since_s=before.since_s)
    return now


def may_take(lease: Seen, *, identity: str, now_s: float) -> bool:
    """Whether it is free, ours, or was not renewed in its time."""
    over = now_s - lease.since_s > lease.duration_s
    return lease.holder in {"", identity} or over
