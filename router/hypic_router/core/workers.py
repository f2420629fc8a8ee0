"""The engines as a request sees them: one frozen `Fleet`, replaced whole at each change."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from .breaker import CLOSED, Breaker
from .caches.heat import Heat
from .caches.layered import Layered
from .caches.pressure import Pressure
from .caches.residency import NOTHING, Residency


class State(StrEnum):
    """Whether an engine may be sent new requests; a late one only when none is ready."""

    READY = "ready"
    LATE = "late"
    DRAINING = "draining"
    UNREADY = "unready"


# States of engines that may be asked, the better one first.
ASKABLE = (State.READY, State.LATE)
# Python 3.11 takes longer to look a member up than each choice has for an engine.
_READY = State.READY


class Role(StrEnum):
    """What an engine does: all of a request, its prompt only, or its answer only."""

    BOTH = "both"
    PREFILL = "prefill"
    DECODE = "decode"


@dataclass(frozen=True, slots=True)
class Address:
    """Where an engine is and what discovery says of it.

    Attributes:
        name: what people call it: its pod or its URL.
        url: where it listens, without a trailing slash.
        uid: tells a successor of the same name apart.
        state: unready and draining engines keep their running requests.
        reason: why it is in that state, in words for people.
        role: prefill and decode engines answer in pairs.
        revision: only engines of the same one make a pair.
        bootstrap: where a decode engine asks this one for its prompts: host and port.
    """

    name: str
    url: str
    uid: str = ""
    state: State = State.READY
    reason: str = ""
    role: Role = Role.BOTH
    revision: str = ""
    bootstrap: tuple[str, int] = ("", 0)


@dataclass(frozen=True, slots=True)
class Load:
    """What has been sent to an engine and has not ended, counted from the moment of choosing.

    Attributes:
        requests: how many.
        tokens: their cost, in tokens of prefill.
        filling: digests that those requests make the engine hold, and how many ask for each.
    """

    requests: int = 0
    tokens: float = 0.0
    filling: Layered[str, int] = field(default_factory=Layered)

    def with_work(self, tokens: float, digests: Iterable[str]) -> "Load":
        """This load with one more request."""
        changes = {digest: (self.filling.get(digest) or 0) + 1 for digest in digests}
        return Load(self.requests + 1, self.tokens + tokens, self.filling.with_changes(changes))

    def without_work(self, tokens: float, digests: Iterable[str]) -> "Load":
        """This load with a request of that cost ended."""
        counts = {digest: (self.filling.get(digest) or 1) - 1 for digest in digests}
        changes = {digest: count or None for digest, count in counts.items()}
        left = max(self.tokens - tokens, 0.0) if self.requests > 1 else 0.0
        return Load(max(self.requests - 1, 0), left, self.filling.with_changes(changes))

    def with_less(self, tokens: float) -> "Load":
        """This load with a part of a request done."""
        return Load(self.requests, max(self.tokens - tokens, 0.0), self.filling)


IDLE = Load()


@dataclass(frozen=True, slots=True)
class Health:
    """What an engine's last probes said.

    Attributes:
        state: ready, late (no answer in time) or unready.
        words: for people; empty when ready.
    """

    state: State = State.UNREADY
    words: str = "not asked yet"


@dataclass(frozen=True, slots=True)
class Worker:
    """One engine.

    Attributes:
        at: where it is, with discovery's view of its state.
        health: what the engine itself says.
        residency: the segments it holds.
        load: what it is doing for us.
        breaker: what recent failures advise.
        fill_tokens_per_s: its own prefill speed; 0 until it was measured.
    """

    at: Address
    health: Health = Health()
    residency: Residency = NOTHING
    load: Load = IDLE
    breaker: Breaker = CLOSED
    fill_tokens_per_s: float = 0.0

    @property
    def state(self) -> State:
        """Discovery's view, unless the engine itself says less."""
        return self.health.state if self.at.state is _READY else self.at.state

    @property
    def reason(self) -> str:
        """Why it is in its state; empty when ready."""
        return self.health.words if self.at.state is _READY else self.at.reason


@dataclass(frozen=True, slots=True)
class Rates:
    """What the fleet has learned about costs.

    Attributes:
        bytes_per_token: of text, for segments that nobody holds.
        fill_tokens_per_s: prefill speed of one engine.
    """

    bytes_per_token: float = 4.0
    fill_tokens_per_s: float = 8_000.0


@dataclass(frozen=True, slots=True)
class Fleet:
    """All engines at one moment, and what is known of costs and of the traffic.

    Attributes:
        most_requests: that one engine should have at once.
    """

    workers: tuple[Worker, ...] = ()
    rates: Rates = Rates()
    heat: Heat = field(default_factory=Heat)
    pressure: Pressure = field(default_factory=Pressure)
    most_requests: int = 256
