"""A cache under random use: entries, prefixes and requests that share slots for tokens.

Index, pins, eviction and operator slots are the product's. Token slots have an owner here: one that
is handed out must have been free, one that comes back must belong to whoever returns it. After each
operation the sizes that the index keeps are compared with the world's own count.
"""

import random
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from hypic_engine.core import evict
from hypic_engine.core.copies import Copies, Copy
from hypic_engine.core.entry import Entry
from hypic_engine.core.index import Index, Pins
from hypic_engine.core.slots import Slots

N_TOKEN_SLOTS = 1500
N_OPERATORS = 60
N_KEYS = 200
MAX_SEGMENT_TOKENS = 40
MAX_REQUESTS = 12
TOKEN_BYTES = 20
STATE_BYTES = 300
RECOUNT_EVERY = 10_000

TokenSlots = list[int]


@dataclass(eq=False)
class Request:
    """What a request holds: entries by pins, copies that it may share, and slots of its own."""

    pins: Pins
    wanted: list[Entry]
    copies: list[Copy] = field(default_factory=list)
    slots: TokenSlots = field(default_factory=list)


class World:
    """One cache and its users.

    Attributes:
        index: the product's.
        operators: likewise.
        pinned: how many requests pin each entry, counted here.
    """

    def __init__(self, seed: int, index: Index | None = None) -> None:
        self._dice = random.Random(seed)
        self.index = Index() if index is None else index
        self.operators = Slots(N_OPERATORS)
        self.pinned: dict[str, int] = {}
        self._owner: list[object] = [None] * N_TOKEN_SLOTS
        self._free = list(range(N_TOKEN_SLOTS))
        self._copies = Copies()
        self._prefixes: OrderedDict[int, tuple[TokenSlots, float]] = OrderedDict()
        self._ages = evict.Ages(capacity=64)
        self._requests: list[Request] = []
        self._tick = 0
        self._n_tokens = self._n_pinned_tokens = self._n_entries = 0
        self._actions = {
            self.fill: 20,
            self.abandon_fill: 4,
            self.hit: 25,
            self.end_prefill: 10,
            self.finish: 22,
            self.retract: 6,
            self.press: 6,
            self.evict_entries: 2,
            self.keep: 2,
            self.dismiss: 2,
            self.add_prefix: 8,
            self.touch_prefix: 4,
            self.keep_plain: 6,
        }
        self._names = list(self._actions)
        self._weights = list(self._actions.values())

    def step(self) -> None:
        """One random operation and the check after it."""
        self._tick += 1
        if self._tick % 4_000 == 0:
            self.flush()
        elif self._tick % 1_500 == 0:
            self.renew()
        else:
            self._dice.choices(self._names, self._weights)[0]()
        self.check()
        if self._tick % RECOUNT_EVERY == 0:
            self.recount()

    # Slots of tokens.

    def _take(self, owner: object, n_tokens: int) -> TokenSlots | None:
        if len(self._free) < n_tokens:
            self._make_room(n_tokens - len(self._free))
        if len(self._free) < n_tokens:
            return None
        slots = self._free[-n_tokens:]
        del self._free[-n_tokens:]
        for slot in slots:
            assert self._owner[slot] is None, f"slot {slot} was free and owned"
            self._owner[slot] = owner
        return slots

    def _give_back(self, owner: object, slots: TokenSlots) -> None:
        for slot in slots:
            assert self._owner[slot] == owner, f"slot {slot} is returned by who does not own it"
            self._owner[slot] = None
        self._free.extend(slots)

    def _make_room(self, n_tokens: int) -> None:
        while n_tokens > 0:
            leaf = self._least_prefix()
            choice = evict.choice(self.index.least_worth(), leaf)
            if choice is None:
                return
            if choice.side is evict.Side.PREFIX:
                number, (slots, _) = self._prefixes.popitem(last=False)
                self._give_back(("prefix", number), slots)
                self.index.raise_floor(choice.worth.value)
                n_tokens -= len(slots)
            else:
                n_tokens -= sum(e.n_tokens for e in self._drop(self.index.evicted(n_entries=1)))

    def _least_prefix(self) -> evict.Worth | None:
        if not self._prefixes:
            return None
        slots, used_at = next(iter(self._prefixes.values()))
        self._ages.note(self._tick, self.index.floor)
        n_bytes = len(slots) * TOKEN_BYTES + STATE_BYTES
        floor = self._ages.floor_at(used_at)
        return evict.worth(n_tokens=len(slots), n_bytes=n_bytes, n_uses=1, floor=floor, tie=0)

    # Entries.

    def _drop(self, victims: list[Entry]) -> list[Entry]:
        for entry in victims:
            assert not self.pinned.get(entry.key), f"{entry.key} was evicted under a reader"
            self._give_back(entry.key, entry.slots)
            self.operators.free(entry.operator)
            self._n_tokens -= entry.n_tokens
            self._n_entries -= 1
        return victims

    def _operator(self) -> int | None:
        if not self.operators.n_free:
            self._drop(self.index.evicted(n_entries=1))
        return self.operators.alloc()

    def _entry(self, key: str, slots: TokenSlots, operator: int) -> None:
        n_bytes = len(slots) * TOKEN_BYTES + 2 * STATE_BYTES
        self.index.insert(Entry(key, key.encode(), len(slots), n_bytes, slots, operator))
        self._n_tokens += len(slots)
        self._n_entries += 1

    def _random_key(self) -> str:
        return f"segment {self._dice.randrange(N_KEYS)}"

    @staticmethod
    def _length(key: str) -> int:
        return 1 + int(key.split()[1]) * 7 % MAX_SEGMENT_TOKENS

    # What happens.

    def fill(self) -> None:
        """A fill ends: its slots become the entry's, or go back when another was faster."""
        key = self._random_key()
        operator = self._operator()
        if operator is None:
            return
        slots = (
            self._take(key, self._length(key))
            if self.index.find(key, key.encode()) is None
            else None
        )
        if slots is None:
            self.operators.free(operator)
        else:
            self._entry(key, slots, operator)

    def abandon_fill(self) -> None:
        """A fill is aborted while it runs."""
        operator = self._operator()
        slots = self._take("a fill", self._dice.randrange(1, MAX_SEGMENT_TOKENS))
        if operator is not None:
            self.operators.free(operator)
        if slots is not None:
            self._give_back("a fill", slots)

    def hit(self) -> None:
        """A request pins several entries, some twice, and reads moved copies of them."""
        if len(self._requests) >= MAX_REQUESTS:
            self.finish()
        found = []
        for _ in range(self._dice.randrange(1, 5)):
            key = self._random_key()
            entry = self.index.find(key, key.encode())
            if entry is not None:
                found.append(entry)
        request = Request(Pins(self.index), found)
        self._requests.append(request)
        self._pin(request)

    def _pin(self, request: Request) -> None:
        for entry in request.wanted:
            request.pins.add(entry)
            self.index.used(entry)
        for key in {entry.key: None for entry in request.wanted}:
            n = self.pinned[key] = self.pinned.get(key, 0) + 1
            if n == 1:
                self._n_pinned_tokens += self._length(key)
        places = [(entry, (entry.key, self._dice.randrange(3))) for entry in request.wanted]
        request.copies = [copy for entry, place in places if (copy := self._copy(entry, place))]
        request.slots = self._take(request, self._dice.randrange(1, 20)) or []

    def _copy(self, entry: Entry, place: tuple[str, int]) -> Copy | None:
        shared = self._copies.shared(place)
        slots = None if shared else self._take(place, entry.n_tokens)
        return shared if slots is None else self._copies.add(place, slots, entry.n_tokens)

    def _let_go(self, request: Request) -> None:
        self._give_back(request, request.slots)
        for copy in request.copies:
            if self._copies.release(copy):
                self._give_back(copy.place, copy.slots)
        request.copies, request.slots = [], []

    def _unpin(self, request: Request) -> None:
        if not len(request.pins):
            return
        request.pins.release()
        for key in {entry.key: None for entry in request.wanted}:
            self.pinned[key] -= 1
            if not self.pinned[key]:
                self._n_pinned_tokens -= self._length(key)

    def end_prefill(self) -> None:
        """A request's copies are made: it lets its entries go and keeps its slots."""
        if self._requests:
            self._unpin(self._dice.choice(self._requests))

    def finish(self) -> None:
        """A request ends or is aborted; it is released twice, which changes nothing."""
        if not self._requests:
            return
        request = self._requests.pop(self._dice.randrange(len(self._requests)))
        self._unpin(request)
        request.pins.release()
        self._let_go(request)

    def retract(self) -> None:
        """A request gives everything back and begins anew with what is still there."""
        if not self._requests:
            return
        request = self._dice.choice(self._requests)
        self._unpin(request)
        self._let_go(request)
        request.pins = Pins(self.index)
        kept = [self.index.find(entry.key, entry.ids) for entry in request.wanted]
        request.wanted = [entry for entry in kept if entry is not None]
        self._pin(request)

    def press(self) -> None:
        """Somebody needs tokens at once."""
        self._make_room(self._dice.randrange(1, 200))

    def evict_entries(self) -> None:
        """Entries leave, at times only those on probation."""
        probation = self._dice.random() < 0.5
        n_entries = self._dice.randrange(4)
        self._drop(self.index.evicted(n_entries=n_entries, only_on_probation=probation))

    def keep(self) -> None:
        """Somebody asks that an entry leave last, or takes that back."""
        key = self._random_key()
        entry = self.index.find(key, key.encode())
        if entry is not None:
            self.index.keep(entry, kept=self._dice.random() < 0.3)

    def dismiss(self) -> None:
        """Somebody asks that an entry leave."""
        key = self._random_key()
        entry = self.index.find(key, key.encode())
        if entry is not None and not entry.n_pins:
            self.index.remove(entry)
            self._drop([entry])

    def add_prefix(self) -> None:
        """A plain prompt ends and its slots become a leaf of the tree."""
        number = self._tick
        slots = self._take(("prefix", number), self._dice.randrange(1, MAX_SEGMENT_TOKENS))
        if slots is not None:
            self._prefixes[number] = (slots, self._tick)

    def touch_prefix(self) -> None:
        """A plain prompt begins with a known prefix."""
        if self._prefixes:
            number = (
                self._dice.choice(list(self._prefixes))
                if len(self._prefixes) < 50
                else next(iter(self._prefixes))
            )
            self._prefixes[number] = (self._prefixes[number][0], self._tick)
            self._prefixes.move_to_end(number)

    def keep_plain(self) -> None:
        """A plain prompt leaves a copy on probation, at nobody's cost who was ever used."""
        key = self._random_key()
        if self.index.find(key, key.encode()) is not None:
            return
        n_missing = self._length(key) - len(self._free)
        if n_missing > 0:
            settled = {e.key for e in self.index if e.n_uses} if self._tick % 50 == 0 else set()
            self._drop(self.index.evicted(n_tokens=n_missing, only_on_probation=True))
            assert all(self.index.find(k, k.encode()) for k in settled), "probation cost a used one"
        if len(self._free) < self._length(key) or not self.operators.n_free:
            return
        operator, slots = self.operators.alloc(), self._take(key, self._length(key))
        assert operator is not None
        assert slots is not None
        self._entry(key, slots, operator)

    def renew(self) -> None:
        """Other weights: all that nobody reads leaves at once."""
        self._drop(self.index.evicted(n_entries=len(self.index)))
        assert self.index.n_evictable_entries == 0

    def flush(self) -> None:
        """Everything is forgotten."""
        while self._requests:
            self.finish()
        for entry in self.index.clear():
            self._give_back(entry.key, entry.slots)
        self.operators.clear()
        while self._prefixes:
            number, (slots, _) = self._prefixes.popitem()
            self._give_back(("prefix", number), slots)
        self._n_tokens = self._n_entries = 0
        self.pinned.clear()
        assert len(self._free) == N_TOKEN_SLOTS

    # Checks.

    def check(self) -> None:
        """What the index counts is what happened, in constant time."""
        index = self.index
        assert index.n_tokens == self._n_tokens, "tokens"
        assert len(index) == self._n_entries, "entries"
        assert index.n_pinned_tokens == self._n_pinned_tokens, "pinned tokens"
        assert N_OPERATORS - self.operators.n_free == self._n_entries, "operators"
        assert 0 <= index.n_evictable_tokens <= index.n_tokens, "evictable tokens"

    def recount(self) -> None:
        """Everything from the start: every slot has one owner or is free."""
        entries = list(self.index)
        self.index.check_integrity(slot for entry in entries for slot in entry.slots)
        self.operators.check_integrity({entry.operator for entry in entries})
        owned: dict[int, Any] = {}
        for entry in entries:
            owned |= dict.fromkeys(entry.slots, entry.key)
            assert entry.n_pins == self.pinned.get(entry.key, 0), f"pins of {entry.key}"
        for number, (slots, _) in self._prefixes.items():
            owned |= dict.fromkeys(slots, ("prefix", number))
        for request in self._requests:
            owned |= dict.fromkeys(request.slots, request)
        read = [copy for request in self._requests for copy in request.copies]
        assert sorted(copy.place for copy in self._copies) == sorted({copy.place for copy in read})
        for copy in self._copies:
            assert copy.n_readers == read.count(copy), f"readers of {copy.place}"
            owned |= dict.fromkeys(copy.slots, copy.place)
        assert self._copies.n_tokens == sum(copy.n_tokens for copy in self._copies)
        assert {slot: self._owner[slot] for slot in owned} == owned
        assert len(set(self._free)) == len(self._free)
        assert sum(owner is not None for owner in self._owner) == len(owned)
        assert len(owned) + len(self._free) == N_TOKEN_SLOTS
