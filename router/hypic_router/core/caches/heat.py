"""How much of the recent traffic asks for each segment, and how many copies that is worth.

Counts in two windows, so that what was asked for long ago is forgotten whole. Does not know where
copies are.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .layered import Layered

WINDOW_S = 60.0
# A window that names more segments than this ends early: what is hot shows in fewer.
WINDOW_SEGMENTS = 32_768
# Requests that asked for nothing, counted beside the real ones: after a start nothing is hot yet.
UNKNOWN_REQUESTS = 8

# What a further copy is charged, as a multiple of the time to fill it: below its share of the
# traffic it will serve others too; beyond it, it costs memory in which others would be found.
WANTED_CHARGE, SPARE_CHARGE, EXCESS_CHARGE = 0.5, 2.0, 4.0


@dataclass(frozen=True, slots=True)
class Window:
    """Requests in some stretch of time, and how many of them asked for each segment."""

    n_requests: int = 0
    asked: Layered[str, int] = field(default_factory=Layered)


@dataclass(frozen=True, slots=True)
class Heat:
    """The recent traffic.

    Attributes:
        began_s: when the current window began.
        now: the current window.
        before: the one before it.
    """

    began_s: float = 0.0
    now: Window = Window()
    before: Window = Window()

    def share(self, digest: str) -> float:
        """Share of the recent requests that asked for this segment."""
        asked = (self.now.asked.get(digest) or 0) + (self.before.asked.get(digest) or 0)
        return asked / (self.now.n_requests + self.before.n_requests + UNKNOWN_REQUESTS)

    def hottest(self, count: int) -> list[tuple[str, float]]:
        """The digests with the largest shares, and those."""
        most = sorted(self.now.asked.items(), key=lambda pair: -pair[1])[:count]
        most += sorted(self.before.asked.items(), key=lambda pair: -pair[1])[:count]
        shares = {digest: self.share(digest) for digest, _ in most}
        return sorted(shares.items(), key=lambda pair: -pair[1])[:count]


def after_request(heat: Heat, digests: Iterable[str], now_s: float) -> Heat:
    """The heat once a request has asked for these segments."""
    now, before, began_s = heat.now, heat.before, heat.began_s
    if now_s - began_s >= WINDOW_S or len(now.asked.base) > WINDOW_SEGMENTS:
        recent = now_s - began_s < 2 * WINDOW_S
        now, before, began_s = Window(), now if recent else Window(), now_s
    changes: Mapping[str, int] = {
        digest: (now.asked.get(digest) or 0) + 1 for digest in frozenset(digests)
    }
    return Heat(began_s, Window(now.n_requests + 1, now.asked.with_changes(changes)), before)


def copies(share: float, n_engines: int) -> int:
    """Most engines that should hold a segment: as its share of the traffic asks, and one more."""
    return min(int(share * n_engines) + 2, n_engines)


def charge(share: float, n_copies: int, n_engines: int) -> float:
    """What one more copy is charged, as a multiple of the time to fill it.

    Args:
        share: of the traffic that asks for it.
        n_copies: engines that hold it or are filling it.
        n_engines: all that could.
    """
    if n_copies == 0:
        return 1.0
    if n_copies <= share * n_engines:
        return WANTED_CHARGE
    return SPARE_CHARGE if n_copies < copies(share, n_engines) else EXCESS_CHARGE
