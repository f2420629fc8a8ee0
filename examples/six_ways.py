"""Ask one question over the same documents in six ways, and compare speed, hits and answers.

    python examples/six_ways.py MODEL [--online] [--tp 2] [--ways full_recompute,...]

The ways: computing everything, SGLang's prefix cache, and the four modes of segment caching. Each
has a process of its own: an engine in it, or with ``--online`` a server and a client. Every way is
asked cold and then with the documents in another order. Ends with status 1 unless the prefix
cache answers as computing everything does, and segments are found in the other order.
"""

import argparse
import itertools
import json
import random
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

MODES = ("addition", "transition", "transition_rope", "transition_rope_recompute")
WAYS: dict[str, dict[str, Any]] = {
    "full_recompute": {"disable_radix_cache": True},
    "prefix_cache": {},
    **{f"pic_{mode}": {"pic_enable": True, "pic_mode": mode} for mode in MODES},
}
N_DOCUMENTS, N_TOKENS, SEAM, N_NEW = 4, 256, 8, 8
START_TIMEOUT_S = 900

Ask = Callable[[dict[str, Any]], Iterator[dict[str, Any]]]


def prompt(order: list[int], *, seed: int) -> dict[str, Any]:
    """A head, the documents in this order and a question, as ids that every model has."""
    dice = random.Random(seed)
    pieces = [[dice.randrange(32, 127) for _ in range(N_TOKENS)] for _ in range(N_DOCUMENTS + 2)]
    head, query, *documents = pieces
    ids = [*itertools.chain(head, *(documents[i] for i in order), query)]
    ends = [*range(N_TOKENS, len(ids), N_TOKENS)]
    custom = {"pic": {"segment_ends": ends}}
    sampling = {"temperature": 0, "max_new_tokens": N_NEW, "custom_params": custom}
    return {"input_ids": ids, "sampling_params": sampling, "stream": True}


@contextmanager
def in_this_process(model: str, keywords: dict[str, Any]) -> Iterator[Ask]:
    """An engine without a server."""
    from hypic_engine import Engine  # noqa: PLC0415 - clients need no SGLang

    with Engine(model_path=model, **keywords) as engine:
        yield lambda body: engine.generate(**body)


@contextmanager
def over_http(model: str, keywords: dict[str, Any]) -> Iterator[Ask]:
    """A server of its own and a client."""
    url = f"http://127.0.0.1:{(port := _free_port())}"
    words = [sys.executable, "-m", "sglang.launch_server", "--model-path", model]
    words += ["--port", str(port)]
    for name, value in keywords.items():
        words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    server = subprocess.Popen(words, stdout=sys.stderr)
    try:
        _wait_for(url, server)
        yield lambda body: _streamed(url, body)
    finally:
        server.terminate()
        server.wait()


def _free_port() -> int:
    """One that SGLang can add 10,000 to."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while server.poll() is None and time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"{url}/pic/ready", timeout=5).close()
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise SystemExit("the server did not start")


def _streamed(url: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"{url}/generate", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=600) as answer:
        for line in answer:
            data = line.decode().strip().removeprefix("data: ")
            if data and data != "[DONE]":
                yield json.loads(data)


def measured(ask: Ask, order: list[int], *, seed: int = 7) -> dict[str, Any]:
    """Milliseconds to the first token, tokens from the cache, and the answer."""
    began = time.perf_counter()
    pieces = iter(ask(prompt(order, seed=seed)))
    first = next(pieces)
    first_ms = 1e3 * (time.perf_counter() - began)
    *_, last = first, *pieces
    return {
        "ms": first_ms,
        "found": last["meta_info"]["cached_tokens"],
        "ids": last["output_ids"],
    }


def one_way(model: str, way: str, *, online: bool, tp: int) -> dict[str, Any]:
    """What a way needs cold, and for the same documents in another order."""
    keywords = WAYS[way] | ({"tp_size": tp} if tp > 1 else {})
    start = over_http if online else in_this_process
    straight, turned = [*range(N_DOCUMENTS)], [*reversed(range(N_DOCUMENTS))]
    with start(model, keywords) as ask:
        measured(ask, straight, seed=8)  # what is compiled or loaded at first use
        return {"cold": measured(ask, straight), "turned": measured(ask, turned)}


def compared(model: str, ways: list[str], options: list[str]) -> int:
    """Run each way in a process of its own and print a line of each."""
    print(f"{'':34}{'cold ms':>9}{'other order ms':>16}{'from cache':>12}{'same tokens':>13}")
    results = {}
    for way in ways:
        words = [sys.executable, __file__, model, "--one", way, *options]
        ended = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
        if ended.returncode:
            print(f"{way:34}did not end right: status {ended.returncode}")
            return 1
        result = results[way] = json.loads(ended.stdout.splitlines()[-1])
        cold, turned, wanted = result["cold"], result["turned"], results[ways[0]]["turned"]["ids"]
        same = [a == b for a, b in zip(turned["ids"], wanted, strict=True)]
        n_same = [*same, False].index(False)
        print(
            f"{way:34}{cold['ms']:9.0f}{turned['ms']:16.0f}{turned['found']:12}"
            f"{n_same:>8} of {len(same)}",
            flush=True,
        )
    return 0 if all(_right(way, results) for way in results) else 1


def _right(way: str, results: dict[str, Any]) -> bool:
    turned, full = results[way]["turned"], results.get("full_recompute")
    if way.startswith("pic_"):
        return turned["found"] >= N_DOCUMENTS * (N_TOKENS - SEAM)
    return full is None or turned["ids"] == full["turned"]["ids"]


def main() -> int:
    """Compare, or be one of those that are compared."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", metavar="MODEL", help="folder of a hybrid model")
    parser.add_argument("--online", action="store_true", help="over HTTP, not in the process")
    parser.add_argument("--tp", type=int, default=1, help="tensor parallel size")
    parser.add_argument("--ways", default=",".join(WAYS), help="default: %(default)s")
    parser.add_argument("--one", choices=WAYS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        result = one_way(given.model, given.one, online=given.online, tp=given.tp)
        print(json.dumps(result), flush=True)
        return 0
    options = ["--tp", str(given.tp), *(["--online"] if given.online else [])]
    return compared(str(Path(given.model).resolve()), given.ways.split(","), options)


if __name__ == "__main__":
    sys.exit(main())
