"""What each policy finds in caches: 200 requests over 20 documents in random orders, simulated.

    python benchmarks/policies.py [--requests 200] [--documents 20] [--each 2] [--seed 1]

The router's own choosing and bookkeeping run against simulated engines: one prefill at a time, each
segment filled once and then found, the least recently used one gone when memory is full. Time is
simulated too, so the numbers are the same on every machine.

Beside the policies stand two assignments that knew all requests beforehand, as good as a wide beam
search finds them. "best" ignores load, which no router may: where memory holds every document it
sends everything to one engine. "as even" never gives an engine more than the busiest one got from
`segment`, as a multiple of its share so far. The numbers in brackets say how even a policy was:
the busiest engine's requests over the mean.
"""

import argparse
import heapq
import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hypic_engine.contract.events import Item, Removed, Stored
from hypic_router.core.caches.residency import Residency, after
from hypic_router.core.choose import choose
from hypic_router.core.cut import Segment
from hypic_router.core.prompt import Prompt
from hypic_router.core.score import POLICIES
from hypic_router.core.workers import Address, Health, State
from hypic_router.fleet import FleetStore

FILL_TOKENS_PER_S = 8_000.0
DECODE_S = 0.5
QUERY_TOKENS = 32
ORDER = ("segment", "least_load", "prefix_hash", "round_robin")

# For each engine the documents that it holds, and how many requests it was given.
_Assigned = tuple[tuple[tuple[int, ...], int], ...]


@dataclass(frozen=True)
class Work:
    """Requests, and the engines they meet.

    Attributes:
        lengths: tokens of each document.
        requests: the documents of each, in its order.
        users: how many ask at once, each again when it was answered.
        n_engines: how many there are.
        memory_tokens: what one of them can hold.
    """

    lengths: Sequence[int]
    requests: Sequence[tuple[int, ...]]
    users: int
    n_engines: int
    memory_tokens: float

    @property
    def total(self) -> int:
        return sum(self.lengths[one] for request in self.requests for one in request)


def drawn(
    *,
    n_requests: int = 200,
    n_documents: int = 20,
    each: int = 2,
    n_engines: int = 2,
    memory: float = 1.0,
    users_each: int = 1,
    seed: int = 1,
) -> Work:
    """Random work: ``memory`` is the share of all documents that one engine can hold."""
    dice = random.Random(seed)
    lengths = [dice.randrange(500, 3_500) for _ in range(n_documents)]
    requests = [tuple(dice.sample(range(n_documents), each)) for _ in range(n_requests)]
    users = max(users_each * n_engines, 1)
    return Work(lengths, requests, users, n_engines, memory * sum(lengths))


class Cache:
    """One engine's documents, least recently used first."""

    def __init__(self, lengths: Sequence[int], memory_tokens: float) -> None:
        self.lengths, self.room = lengths, memory_tokens
        self.held: dict[int, None] = {}

    def use(self, documents: Sequence[int]) -> tuple[int, list[int], list[int]]:
        """Tokens found, documents filled, documents that had to go."""
        found = [one for one in documents if one in self.held]
        filled = [one for one in documents if one not in self.held]
        for one in found:
            del self.held[one]
        self.held |= dict.fromkeys([*found, *filled])
        self.room -= sum(self.lengths[one] for one in filled)
        gone = []
        while self.room < 0:
            gone.append(next(iter(self.held)))
            del self.held[gone[-1]]
            self.room += self.lengths[gone[-1]]
        return sum(self.lengths[one] for one in found), filled, gone


@dataclass
class Engine:
    """A simulated engine and what it told the router."""

    at: Address
    cache: Cache
    residency: Residency = field(default_factory=lambda: Residency(epoch="e", stale=False))
    free_s: float = 0.0
    served: int = 0

    def tell(self, filled: Sequence[int], gone: Sequence[int]) -> Residency:
        seq = itertools.count(self.residency.seq + 1)
        lengths = self.cache.lengths
        lines = [
            Stored(next(seq), Item(f"k{one}", (f"d{one}",), lengths[one], 1)) for one in filled
        ]
        lines += [Removed(next(seq), f"k{one}") for one in gone]
        self.residency = after(self.residency, lines)
        return self.residency


def simulate(work: Work, policy: str) -> tuple[float, float]:
    """Share of document tokens that were found; the busiest engine's requests over the mean."""
    now_s = 0.0
    store = FleetStore(clock=lambda: now_s)
    engines = {
        f"engine-{i}": Engine(Address(f"engine-{i}", "u"), Cache(work.lengths, work.memory_tokens))
        for i in range(work.n_engines)
    }
    store.discovered([engine.at for engine in engines.values()])
    for engine in engines.values():
        store.probed(engine.at, Health(State.READY, ""))
        store.holds(engine.at, engine.residency)
    order, found = itertools.count(), 0
    waiting = iter(enumerate(work.requests))
    events: list[tuple[float, int, Callable[[], None]]] = []

    def later(at_s: float, act: Callable[[], None]) -> None:
        heapq.heappush(events, (at_s, next(order), act))

    def ask() -> None:
        nonlocal found
        turn, documents = next(waiting, (0, ()))
        if not documents:
            return
        choice = choose(
            prompt(work, documents), store.snapshot, POLICIES[policy], turn=turn, now_s=now_s
        )
        assert choice is not None
        ticket = store.dispatched(choice)
        engine = engines[choice.worker.at.name]
        hit, filled, gone = engine.cache.use(documents)
        found += hit
        engine.served += 1
        cold = sum(work.lengths[one] for one in filled) + QUERY_TOKENS
        engine.free_s = max(engine.free_s, now_s) + cold / FILL_TOKENS_PER_S

        def first() -> None:
            store.holds(engine.at, engine.tell(filled, gone))
            store.answered(ticket)

        later(engine.free_s, first)
        later(engine.free_s + DECODE_S, lambda: store.ended(ticket))
        later(engine.free_s + DECODE_S, ask)

    for _ in range(work.users):
        later(0.0, ask)
    while events:
        now_s, _, act = heapq.heappop(events)
        act()
    mean = len(work.requests) / work.n_engines
    return found / work.total, max(engine.served for engine in engines.values()) / mean


def prompt(work: Work, documents: Sequence[int]) -> Prompt:
    """The request as the router's parser would give it."""
    segments = tuple(Segment(f"d{one}", n_bytes=4 * work.lengths[one]) for one in documents)
    n_bytes = sum(segment.n_bytes for segment in segments) + 4 * QUERY_TOKENS
    return Prompt(segments, n_bytes, output_tokens=16, prefix=f"p{documents[0]}")


def best(work: Work, *, busiest: float = math.inf, beam: int = 300) -> float:
    """The share that an assignment with all requests known beforehand would have found.

    Args:
        work: the requests and engines.
        busiest: what no engine may be given more of than this multiple of its share of the requests
            so far, and one.
        beam: assignments that are kept after each request.
    """
    roomy = work.memory_tokens >= sum(work.lengths)
    if roomy and busiest == math.inf:
        used = {one for request in work.requests for one in request}
        return 1 - sum(work.lengths[one] for one in used) / work.total
    kept: dict[_Assigned, int] = {(((), 0),) * work.n_engines: 0}
    for number, request in enumerate(work.requests, 1):
        most = busiest * number / work.n_engines + 1
        following: dict[_Assigned, int] = {}
        for engines, found in kept.items():
            for one in {one for one in engines if one[1] < most}:
                hit, held = _used(work, one[0], request)
                rest = list(engines)
                rest.remove(one)
                mine = (tuple(sorted(held)) if roomy else held, one[1] + (busiest < math.inf))
                state = tuple(sorted([*rest, mine]))
                following[state] = max(following.get(state, 0), found + hit)
        kept = dict(heapq.nlargest(beam, following.items(), key=lambda pair: pair[1]))
    return max(kept.values()) / work.total


def _used(work: Work, held: tuple[int, ...], request: Sequence[int]) -> tuple[int, tuple[int, ...]]:
    """Tokens that an engine finds of a request, and the documents that it holds afterwards."""
    cache = Cache(work.lengths, work.memory_tokens - sum(work.lengths[one] for one in held))
    cache.held = dict.fromkeys(held)
    return cache.use(request)[0], tuple(cache.held)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--each", type=int, default=2, help="documents of one request")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    print(
        f"{args.requests} requests of {args.each} out of {args.documents} documents, "
        "share of their tokens found in cache (busiest engine over the mean)\n"
    )
    heads = f"{'engines, memory of each':<27}{'best':>7}{'as even':>9}"
    print(heads + "".join(f"{policy:>17}" for policy in ORDER))
    for n_engines in (2, 4, 8):
        for memory in (1.0, 0.75, 0.5):
            work = drawn(
                n_requests=args.requests,
                n_documents=args.documents,
                each=args.each,
                n_engines=n_engines,
                memory=memory,
                seed=args.seed,
            )
            cells = [simulate(work, policy) for policy in ORDER]
            name = f"{n_engines}, {memory:.0%} of documents"
            shown = "".join(f"{share:>8.1%} ({even:.2f} x)" for share, even in cells)
            as_even = best(work, busiest=cells[0][1])
            any_load = max(best(work), as_even)
            print(f"{name:<27}{any_load:>7.1%}{as_even:>9.1%}{shown}", flush=True)


if __name__ == "__main__":
    main()
