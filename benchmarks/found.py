"""What each policy finds in the caches of two real engines: SGLang with the plugin, on CPU.

    make bench-found                                       # two engines of its own
    make bench-found FLAGS="--engines http://A:30000,http://B:30000"  # engines that run: pods, say

200 requests for 2 of 20 documents in random orders, as many at once as there are engines, once for
each policy; caches are flushed in between. Says how many of the documents' tokens the engines found
(`meta_info.pic.found`), beside the two assignments of `benchmarks/policies.py` that knew all
requests beforehand, for engines that hold as much as these turned out to hold. Engines of its own
are started once for each `--room`: with more than all documents need, and with as much, of which
requests under way take their part.
"""

import argparse
import contextlib
import json
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.policies import ORDER, Work, best, drawn
from tests.support.engine_server import command, environment, free_port

SEPARATOR = "<<PIC_SEP>>"
ALPHABET = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ.,0123456789"
START_S = 900.0

Urls = list[str]


@dataclass
class Served:
    """A process that listens."""

    url: str
    process: subprocess.Popen[bytes]


def ask(url: str, body: Any = None, timeout_s: float = 60.0) -> Any:
    raw = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, raw, headers), timeout=timeout_s) as a:
        return json.loads(a.read() or b"null")


def flush(engine: str) -> None:
    request = urllib.request.Request(f"{engine}/flush_cache", method="POST")
    urllib.request.urlopen(request, timeout=60).read()


def until(ready: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    end_s = time.monotonic() + START_S
    while time.monotonic() < end_s and process.poll() is None:
        with contextlib.suppress(OSError, ValueError):
            if ready():
                return
        time.sleep(0.3)
    raise SystemExit("a server did not start")


@contextlib.contextmanager
def started(line: list[str], url: str, path: str, log: Path, **more: str) -> Iterator[Served]:
    """A server, once ``path`` answers 200; its log is shown when it never does."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            line, env={**environment(), **more}, cwd=log.parent, stdout=out, stderr=out
        )
    try:
        try:
            until(lambda: ask(url + path) is not None, process)
        except SystemExit:
            print(log.read_text(errors="replace")[-4_000:])
            raise
        yield Served(url, process)
    finally:
        process.terminate()
        process.wait(30)


def texts(work: Work, seed: int) -> list[str]:
    """The documents: one token a character."""
    dice = random.Random(seed)
    return ["".join(dice.choice(ALPHABET) for _ in range(length)) for length in work.lengths]


def found(router: str, work: Work, documents: list[str]) -> int:
    """Tokens of documents that engines found, all requests together."""

    def one(numbered: tuple[int, tuple[int, ...]]) -> int:
        number, request = numbered
        pieces = [documents[one] for one in request]
        body = {
            "text": SEPARATOR.join([*pieces, f"Question {number}?"]),
            "sampling_params": {"temperature": 0, "max_new_tokens": 2},
        }
        answer = ask(f"{router}/generate", body)
        return min(int(answer["meta_info"]["pic"]["found"]), sum(map(len, pieces)))

    with ThreadPoolExecutor(work.users) as pool:
        return sum(pool.map(one, enumerate(work.requests)))


def held_tokens(engine: str) -> int:
    items, cursor = [], ""
    while cursor is not None:
        page = ask(f"{engine}/pic/segments?cursor={cursor}")
        items, cursor = items + page["items"], page["next"]
    return sum(item["n_tokens"] for item in items)


@contextlib.contextmanager
def routed(engines: Urls, policy: str, log: Path) -> Iterator[str]:
    """A router before these engines that sees them all as ready; logs its choices."""
    port, metrics_port = free_port(), free_port()
    model = ask(f"{engines[0]}/v1/models")["data"][0]["id"]
    line = [sys.executable, "-m", "hypic_router", "--model", model, "--policy", policy]
    line += ["--engines", ",".join(engines), "--unlisted-s", "0", "--log-level", "debug"]
    line += ["--host", "127.0.0.1", "--port", str(port), "--metrics-port", str(metrics_port)]
    fleet = f"http://127.0.0.1:{metrics_port}/fleet"
    with started(line, f"http://127.0.0.1:{port}", "/ready", log) as router:
        ready = ["ready"] * len(engines)
        until(lambda: [one["state"] for one in ask(fleet)["engines"]] == ready, router.process)
        yield router.url


def measure(engines: Urls, work: Work, folder: Path) -> None:
    """Prints one table."""
    documents, held, busiest = texts(work, seed=1), 0.0, 1.0
    print(f"{'policy':<14}{'found':>10}{'requests of each engine':>28}", flush=True)
    for policy in ORDER:
        for engine in engines:
            flush(engine)
        log = folder / f"router-{policy}.log"
        with routed(engines, policy, log) as router:
            share = found(router, work, documents) / work.total
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        chosen = [line["engine"] for line in lines if line["message"] == "Chose an engine"]
        counts = [chosen.count(engine) for engine in engines]
        if policy == "segment":
            busiest = max(counts) * len(engines) / len(chosen)
        held = max(held, sum(map(held_tokens, engines)) / len(engines))
        print(f"{policy:<14}{share:>10.1%}{counts!s:>28}", flush=True)
    bounded = replace(work, memory_tokens=max(held, 1.0))
    as_even = best(bounded, busiest=busiest)
    any_load = max(best(bounded), as_even)
    print(f"{'best, as even':<14}{as_even:>10.1%}{f'busiest {busiest:.2f} x the mean':>28}")
    print(f"{'best':<14}{any_load:>10.1%}{'load ignored':>28}")
    total = sum(work.lengths)
    print(f"an engine holds {held:.0f} of the documents' {total} tokens\n", flush=True)


@contextlib.contextmanager
def own(args: argparse.Namespace, folder: Path, *, count: int, kv_tokens: int) -> Iterator[Urls]:
    """Engines with room for so many tokens."""
    more = {"PYTHONPATH": args.engine_path, "HYPIC_CHECK_OWNERSHIP": "0"}
    flags = ("--pic-enable", "--enable-cache-report", "--max-total-tokens", str(kv_tokens))
    with contextlib.ExitStack() as stack:
        urls = []
        for number in range(count):
            port, log = free_port(), folder / f"engine-{number}.log"
            line = command(args.model, port, *flags, launcher=("-m", "sglang.launch_server"))
            line[0] = args.engine_python
            served = started(line, f"http://127.0.0.1:{port}", "/pic/ready", log, **more)
            urls.append(stack.enter_context(served).url)
        yield urls


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--engines", default="", help="that run already, comma separated")
    parser.add_argument("--model", type=Path, help="folder, for engines of its own")
    parser.add_argument("--engine-python", default="", help="Python with SGLang")
    parser.add_argument("--engine-path", default="", help="PYTHONPATH with the plugin")
    parser.add_argument(
        "--room",
        type=float,
        nargs="+",
        default=[1.5, 1.0],
        help="of its own engines, as a multiple of all documents",
    )
    parser.add_argument("--requests", type=int, default=200)
    args = parser.parse_args()
    running = [url for url in args.engines.split(",") if url]
    work = drawn(n_requests=args.requests, n_engines=len(running) or 2)
    work = replace(work, lengths=[length // 5 for length in work.lengths])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if running:
            measure(running, work, folder)
            return
        for room in args.room:
            kv_tokens = int(room * sum(work.lengths))
            print(f"engines with room for {kv_tokens} tokens, requests included", flush=True)
            with own(args, folder, count=work.n_engines, kv_tokens=kv_tokens) as urls:
                measure(urls, work, folder)


if __name__ == "__main__":
    main()
