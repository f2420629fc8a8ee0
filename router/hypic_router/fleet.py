"""The single writer of the current `Fleet`; requests read its snapshots.

Each method is one change and runs between two awaits, so no reader sees half of it. No IO.
"""

import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from .core import breaker as breakers
from .core.breaker import Breaker
from .core.caches.heat import Heat, after_request
from .core.caches.pressure import Pressure, after_eviction
from .core.caches.residency import Residency
from .core.choose import Choice
from .core.recent import KEPT, Chosen, Recent, chosen
from .core.workers import Address, Fleet, Health, Load, Rates, Worker
from .errors import ClosingError, EngineError, LostError

# One measurement moves a learned rate by this share: lengths are exact, speeds are noisy. Small
# prompts say nothing about either.
SIZE_LEARNING = 0.3
SPEED_LEARNING = 0.1
SMALLEST_MEASURED_TOKENS = 512
SMALLEST_MEASURED_BYTES = 256


@dataclass(eq=False, slots=True)
class Ticket:
    """One request at one engine, from the moment of choosing to its end.

    Attributes:
        choice: why it went there.
        sent_s: when.
        alone: whether the engine had nothing else to do, so that its time can be measured.
        on_lost: called with the reason when it is no use to wait for the engine any longer.
        waiting: whether nothing of the answer has come.
    """

    choice: Choice
    sent_s: float
    alone: bool
    on_lost: Callable[[EngineError], None] | None = None
    waiting: bool = True

    @property
    def at(self) -> Address:
        """The engine it went to."""
        return self.choice.worker.at


@dataclass(slots=True)
class _Entry:
    """One engine's current value, and the requests it has."""

    worker: Worker
    tickets: set[Ticket] = field(default_factory=set)


def _nobody() -> None:
    """Hears of a change while nobody else wants to."""


class FleetStore:
    """Keeps the fleet.

    Attributes:
        on_change: called after each change.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, most_requests: int = 256
    ) -> None:
        self._clock = clock
        self._most_requests = most_requests
        self._entries: dict[str, _Entry] = {}
        self._rates = Rates()
        self._heat, self._pressure = Heat(), Pressure()
        self._snapshot: Fleet | None = None
        self._discovered = False
        self._recent: deque[Chosen] = deque(maxlen=KEPT)
        self.on_change: Callable[[], None] = _nobody

    @property
    def snapshot(self) -> Fleet:
        """The fleet as it is now."""
        if self._snapshot is None:
            workers = tuple(entry.worker for entry in self._entries.values())
            known = (self._rates, self._heat, self._pressure, self._most_requests)
            self._snapshot = Fleet(workers, *known)
        return self._snapshot

    @property
    def recent(self) -> Recent:
        """The last choices."""
        return Recent(tuple(self._recent))

    @property
    def known(self) -> bool:
        """Whether discovery has told once which engines there are, be it none."""
        return self._discovered

    def _change(self, at: Address, change: Callable[[Worker], Worker]) -> None:
        """Replaces one engine's value, unless another engine has its name by now."""
        entry = self._entries.get(at.name)
        if entry is not None and _same(entry.worker.at, at):
            entry.worker = change(entry.worker)
            self._snapshot = None
            self.on_change()

    def _change_load(self, at: Address, change: Callable[[Load], Load]) -> None:
        self._change(at, lambda worker: replace(worker, load=change(worker.load)))

    def _change_breaker(self, at: Address, change: Callable[[Breaker], Breaker]) -> None:
        self._change(at, lambda worker: replace(worker, breaker=change(worker.breaker)))

    def discovered(self, found: Collection[Address]) -> tuple[list[Address], list[Address]]:
        """Makes the fleet hold exactly the engines in ``found``; returns who came and who left.

        An engine that only changed its state keeps what is known of it. One that left loses the
        requests that wait for it.
        """
        wanted = {address.name: address for address in found}
        known = {name: entry.worker.at for name, entry in self._entries.items()}
        gone = [
            at for name, at in known.items() if name not in wanted or not _same(wanted[name], at)
        ]
        for at in gone:
            self.lost(at)
            del self._entries[at.name]
        came = [at for name, at in wanted.items() if name not in self._entries]
        for at in wanted.values():
            entry = self._entries.setdefault(at.name, _Entry(Worker(at)))
            entry.worker = replace(entry.worker, at=at)
        self._snapshot = None
        self._discovered = True
        self.on_change()
        return came, gone

    def probed(self, at: Address, health: Health) -> None:
        """An engine answered a probe, or did not; a good answer lets its breaker try it."""
        self._change(at, lambda worker: replace(worker, health=health))

    def holds(self, at: Address, residency: Residency) -> None:
        """What an engine holds has become known, or unknown."""
        entry = self._entries.get(at.name)
        before = entry.worker.residency.evicted_tokens if entry is not None else 0
        if entry is not None and residency.evicted_tokens > before:
            held = {name: one.worker.residency.n_tokens for name, one in self._entries.items()}
            n_tokens = residency.evicted_tokens - before
            self._pressure = after_eviction(self._pressure, at.name, n_tokens, held_tokens=held)
        self._change(at, lambda worker: replace(worker, residency=residency))

    def lost(self, at: Address) -> None:
        """An engine is gone or dead: requests that have nothing from it go elsewhere."""
        entry = self._entries.get(at.name)
        for ticket in list(entry.tickets) if entry is not None else ():
            if ticket.waiting and ticket.on_lost is not None:
                ticket.on_lost(LostError("the engine vanished before it answered"))

    def abandon(self) -> None:
        """The router ends: requests under way are told, streams too."""
        for ticket in [one for entry in self._entries.values() for one in entry.tickets]:
            if ticket.on_lost is not None:
                ticket.on_lost(ClosingError("the router was stopped before the answer had ended"))

    def dispatched(self, choice: Choice) -> Ticket:
        """Counts a request at its engine, before anything is sent."""
        at = choice.worker.at
        ticket = Ticket(choice, self._clock(), alone=choice.worker.load.requests == 0)
        if (entry := self._entries.get(at.name)) is not None:
            entry.tickets.add(ticket)
        digests = choice.size.segments
        self._heat = after_request(self._heat, digests, self._clock())
        self._recent.append(chosen(choice, ticket.sent_s))
        self._change(
            at,
            lambda worker: replace(
                worker,
                load=worker.load.with_work(choice.work_tokens, digests),
                breaker=breakers.sent(worker.breaker),
            ),
        )
        self._learn_sizes(choice)
        return ticket

    def answered(self, ticket: Ticket) -> None:
        """The first piece of the answer came: its prefill is done and the engine works."""
        ticket.waiting = False
        cold = ticket.choice.cold_tokens
        self._change_load(ticket.at, lambda load: load.with_less(cold))
        if ticket.choice.worker.breaker != breakers.CLOSED:
            self._change_breaker(ticket.at, breakers.succeeded)
        self._learn_speed(ticket)

    def ended(self, ticket: Ticket, *, failed: bool = False) -> None:
        """The request is over; ``failed`` when that was the engine's fault."""
        choice = ticket.choice
        left = choice.work_tokens if ticket.waiting else choice.size.output
        if (entry := self._entries.get(ticket.at.name)) is not None:
            entry.tickets.discard(ticket)
        digests = choice.size.segments
        self._change_load(ticket.at, lambda load: load.without_work(left, digests))
        if failed:
            self._change_breaker(ticket.at, lambda b: breakers.failed(b, self._clock()))
        elif ticket.waiting:
            self._change_breaker(ticket.at, breakers.released)

    def _learn_sizes(self, choice: Choice) -> None:
        """Bytes in a token, from segments whose length some engine has told."""
        known = choice.size.measured_bytes
        if known >= SMALLEST_MEASURED_BYTES and choice.size.measured_tokens:
            ratio = known / choice.size.measured_tokens
            kept = self._rates.bytes_per_token
            self._rates = replace(
                self._rates,
                bytes_per_token=min(max(kept + SIZE_LEARNING * (ratio - kept), 0.25), 64.0),
            )

    def _learn_speed(self, ticket: Ticket) -> None:
        """Prefill speed, from streams that had their engine to themselves."""
        cold = ticket.choice.cold_tokens
        if not (ticket.alone and ticket.choice.stream and cold >= SMALLEST_MEASURED_TOKENS):
            return
        speed = cold / max(self._clock() - ticket.sent_s, 1e-3)
        usual = _moved(self._rates.fill_tokens_per_s, speed)
        self._rates = replace(self._rates, fill_tokens_per_s=usual)
        own = ticket.choice.worker.fill_tokens_per_s
        own = _moved(own, speed) if own else speed
        self._change(ticket.at, lambda worker: replace(worker, fill_tokens_per_s=own))


def _moved(kept: float, measured: float) -> float:
    """A speed that is kept, once it was measured again."""
    return min(max(kept + SPEED_LEARNING * (measured - kept), 50.0), 1e6)


def _same(one: Address, other: Address) -> bool:
    return (one.url, one.uid) == (other.url, other.uid)
