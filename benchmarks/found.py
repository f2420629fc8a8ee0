"""What each policy finds in the caches of two real engines: SGLang with the plugin, on CPU.

    make bench-found                 or, for engines that hold less than all documents,
    make bench-found FLAGS="--memory-gib 0.02"

200 requests for 2 of 20 documents in random orders, as many at once as there are engines, once for
each policy; caches are flushed in between. Says how many of the documents' tokens the engines found
(`meta_info.pic.found`), beside the best possible assignment of the same requests, which is computed
offline as in `benchmarks/policies.py` from the memory that engines turn out to have.
"""

import argparse
import contextlib
import json
import os
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
from tests.support.engine_server import CPU_FLAGS, command, environment, free_port

SEPARATOR = "<<PIC_SEP>>"
ALPHABET = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ.,0123456789"
START_S = 900.0


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


def measure(engines: list[Served], work: Work, folder: Path) -> None:
    documents, most_held = texts(work, seed=1), 0
    print(f"{'policy':<14}{'found':>10}{'requests of each engine':>28}", flush=True)
    for policy in ORDER:
        for engine in engines:
            request = urllib.request.Request(f"{engine.url}/flush_cache", method="POST")
            urllib.request.urlopen(request, timeout=60).read()
        port, metrics_port = free_port(), free_port()
        line = [sys.executable, "-m", "hypic_router", "--model", "default", "--policy", policy]
        line += ["--engines", ",".join(engine.url for engine in engines), "--unlisted-s", "0"]
        line += ["--host", "127.0.0.1", "--port", str(port), "--metrics-port", str(metrics_port)]
        log = folder / f"router-{policy}.log"
        router = f"http://127.0.0.1:{port}"
        line += ["--log-level", "debug"]
        with started(line, router, "/ready", log):
            fleet = f"http://127.0.0.1:{metrics_port}/fleet"
            until(
                lambda url=fleet: [e["state"] for e in ask(url)["engines"]] == ["ready"] * 2,
                engines[0].process,
            )
            share = found(router, work, documents) / work.total
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        chosen = [line["engine"] for line in lines if line["message"] == "Chose an engine"]
        counts = [chosen.count(engine.url) for engine in engines]
        most_held = max(most_held, *(held_tokens(engine.url) for engine in engines))
        print(f"{policy:<14}{share:>10.1%}{counts!s:>28}", flush=True)
    bounded = replace(work, memory_tokens=max(most_held, 1))
    print(f"best possible {best(bounded):>9.1%}   (engines hold {most_held} tokens at most)")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--engine-python", required=True, help="Python with SGLang")
    parser.add_argument("--engine-path", required=True, help="PYTHONPATH with the plugin")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--memory-gib", default="", help="of one engine's segments")
    args = parser.parse_args()
    work = drawn(n_requests=args.requests)
    work = replace(work, lengths=[length // 5 for length in work.lengths])
    flags = ("--pic-enable", "--enable-cache-report", "--served-model-name", "default")
    flags += ("--pic-memory-gib", args.memory_gib) if args.memory_gib else ()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        engines = []
        for number in range(work.n_engines):
            port = free_port()
            launcher = ("-m", "sglang.launch_server")
            line = command(args.model, port, *CPU_FLAGS, *flags, launcher=launcher)
            line[0] = args.engine_python
            path = {"PYTHONPATH": args.engine_path, "PATH": os.environ["PATH"]}
            url, log = f"http://127.0.0.1:{port}", folder / f"engine-{number}.log"
            engines.append(stack.enter_context(started(line, url, "/pic/ready", log, **path)))
        measure(engines, work, folder)


if __name__ == "__main__":
    main()
