"""What the router adds, beside PyPI's sglang-router in the same run: latency, requests and chunks.

    make bench-router            # or: python benchmarks/router.py [--seconds 5] [--only rate,...]

Both routers, one after the other, have a core of their own, the same fake engine and the same load
(`load.py`, on the other core). Choosing is measured in this process. Prints a table and one last
line. Processor time is the router's own: a busy machine disturbs it less than the clock.
"""

import argparse
import os
import statistics
import sys
import time
from dataclasses import dataclass, field

import load
import uvloop

from hypic_engine.contract.events import Item, Page
from hypic_router.core.caches.pressure import Pressure, after_eviction
from hypic_router.core.caches.residency import NOTHING, with_page
from hypic_router.core.choose import choose
from hypic_router.core.cut import Segment
from hypic_router.core.prompt import Prompt
from hypic_router.core.score import POLICIES
from hypic_router.core.workers import IDLE, Address, Fleet, Health, State, Worker

ENGINE_PORT, ROUTER_PORT, METRICS_PORT, RUST_PORT, RUST_METRICS_PORT = range(17_180, 17_185)
ENGINE = f"http://127.0.0.1:{ENGINE_PORT}"
BODIES = {"small": 64, "16 KB": 16_384, "230 KB": 235_520}
NAN = float("nan")


@dataclass
class Found:
    """What was measured of one router."""

    added_ms: dict[float, float] = field(default_factory=dict)
    rates: dict[str, load.Pace] = field(default_factory=dict)
    chunks: load.Pace = field(default_factory=lambda: load.Pace(NAN, NAN))


def ours() -> list[str]:
    flags = ["--host", "127.0.0.1", "--port", str(ROUTER_PORT), "--metrics-port", str(METRICS_PORT)]
    flags += ["--model", "m", "--engines", ENGINE, "--unlisted-s", "0", "--log-level", "error"]
    return [sys.executable, "-m", "hypic_router", *flags]


def rust() -> list[str]:
    flags = ["--host", "127.0.0.1", "--port", str(RUST_PORT), "--worker-urls", ENGINE]
    flags += ["--prometheus-port", str(RUST_METRICS_PORT), "--log-level", "error"]
    return [sys.executable, "-m", "sglang_router.launch_router", *flags]


def choosing() -> float:
    """Milliseconds of processor time to choose among 64 busy engines with 100,000 segments."""
    each, workers, pressure = 100_000 // 64, [], Pressure()
    for n in range(64):
        items = tuple(Item(f"k{n}-{i}", (f"{n:016x}{i:016x}",), 1_000, 1) for i in range(each))
        residency = with_page(NOTHING, Page("e", 0, items, None))
        at = Address(f"engine-{n}", f"http://engine-{n}")
        load = IDLE
        for i in range(8):
            load = load.with_work(1_000.0, [f"{n:08x}{i:08x}"])
        workers.append(Worker(at, Health(State.READY, ""), residency, load))
    for worker in workers:
        held_tokens = {one.at.name: 1_000 * each for one in workers}
        pressure = after_eviction(pressure, worker.at.name, 1_000, held_tokens=held_tokens)
    fleet = Fleet(tuple(workers), pressure=pressure)
    segments = tuple(Segment(f"{n:016x}{n:016x}", n_bytes=4_000) for n in range(8))
    asked = Prompt(segments, 32_100)
    times = []
    for turn in range(300):
        start = time.thread_time()
        choose(asked, fleet, POLICIES["segment"], turn=turn, now_s=0.0)
        times.append(1_000 * (time.thread_time() - start))
    return statistics.median(times)


async def measured(
    name: str, command: list[str], port: int, seconds: float, only: set[str]
) -> Found:
    found = Found()
    with load.running(command, 0) as process:
        await load.until_served(port, name)
        if "latency" in only:
            direct, through = (
                await load.latency(ENGINE_PORT, seconds),
                await load.latency(port, seconds),
            )
            load.row(f"{name}: 300 requests/s of 16 KB", "direct ms", "through ms", "added ms")
            for q in (0.5, 0.99):
                a, b = (times[int(q * len(times))] for times in (direct, through))
                load.row(f"  p{q * 100:.0f}", f"{a:.2f}", f"{b:.2f}", f"{b - a:.2f}")
                found.added_ms[q] = b - a
        for label, size in BODIES.items() if "rate" in only else ():
            body = {"text": load.prompt(size)} if size > 1_000 else load.SMALL
            got = found.rates[label] = await load.pace(process, port, seconds, body, 64)
            shown = f"{got.per_s:.0f}", f"{got.cpu_us:.0f} us CPU"
            load.row(f"{name}: requests/s, {label}, 64 at once", *shown)
        if "chunks" in only:
            got = await load.pace(process, port, seconds, load.STREAM, 16)
            each = load.CHUNKS_A_STREAM
            found.chunks = load.Pace(got.per_s * each, got.cpu_us / each)
            shown = f"{found.chunks.per_s:.0f}", f"{found.chunks.cpu_us:.1f} us CPU"
            load.row(f"{name}: stream chunks/s, 16 at once", *shown)
    return found


async def main(seconds: float, only: set[str]) -> None:
    with load.running([sys.executable, load.__file__, "--port", str(ENGINE_PORT)], 1):
        await load.until_served(ENGINE_PORT, "the engine")
        router = await measured("hypic-router", ours(), ROUTER_PORT, seconds, only)
        other = Found()
        if "rust" in only:
            other = await measured("sglang-router", rust(), RUST_PORT, seconds, only)
    spent_ms = choosing() if "choose" in only else NAN
    load.row("choosing, 64 engines x 100k segments", f"{spent_ms:.3f} ms")
    idle = load.Pace(NAN, NAN)
    print(
        f"router: added p50 {router.added_ms.get(0.5, NAN):.2f} ms "
        f"p99 {router.added_ms.get(0.99, NAN):.2f} ms at 300 rps x 16 KB | "
        f"max {router.rates.get('small', idle).per_s:.0f} rps "
        f"(rust {other.rates.get('small', idle).per_s:.0f}) | "
        f"stream chunks {router.chunks.per_s:.0f}/s | "
        f"choose {spent_ms:.3f} ms at 64 engines x 100k segments"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--only", default="latency,rate,chunks,choose,rust")
    args = parser.parse_args()
    if (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, {1})
    uvloop.run(main(args.seconds, set(args.only.split(","))))
