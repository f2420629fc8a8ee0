"""Time to first token on shuffled documents: segment cache against stock prefix cache, one run.

    python benchmarks/ttft.py MODEL [--gpu] [--shapes 8x1024,16x2048] [--rounds 7]

Starts one server after the other on the same machine with the same model and asks both for the
same prompts: a head of 64 tokens, shuffled documents, a query of 64. The model's tokenizer must
give one token an ASCII character, as that of `examples/tiny_model.py`; then a document of N
characters is one of N tokens. Milliseconds over HTTP, streaming: one cold request, then the
median of the rounds, each with the documents in another order.
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.engine_server import Engine

SEPARATOR = "<<PIC_SEP>>"
ALPHABET = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ.,0123456789"
PLUGIN = ("-m", "sglang.launch_server")
TEXT_ONLY = (str(Path(__file__).with_name("text_only_server.py")),)
SYSTEMS = {
    "segments": ("--pic-enable", "--enable-cache-report"),
    "stock prefix cache": ("--enable-cache-report", "--chunked-prefill-size", "-1"),
}


def ttft_ms(url: str, text: str) -> tuple[float, int]:
    """Milliseconds to the first token, and the tokens taken from the cache."""
    sampling = {"temperature": 0, "max_new_tokens": 2, "ignore_eos": True}
    body = json.dumps({"text": text, "sampling_params": sampling, "stream": True}).encode()
    headers = {"content-type": "application/json"}
    start = time.perf_counter()
    with urllib.request.urlopen(urllib.request.Request(f"{url}/generate", body, headers)) as answer:
        first = answer.readline()
        elapsed_ms = (time.perf_counter() - start) * 1e3
        answer.read()
    return elapsed_ms, json.loads(first.removeprefix(b"data: "))["meta_info"]["cached_tokens"]


def measure(url: str, joiner: str, n_documents: int, length: int, rounds: int) -> dict[str, float]:
    dice = random.Random(n_documents * length)

    def text(n: int) -> str:
        return "".join(dice.choice(ALPHABET) for _ in range(n))

    head = text(64)
    for _ in range(2):  # compile for this shape
        warm_up = [text(length) for _ in range(n_documents)]
        for _ in range(2):
            ttft_ms(url, joiner.join([head, *warm_up, text(64)]))
            dice.shuffle(warm_up)
    documents = [text(length) for _ in range(n_documents)]
    cold, _ = ttft_ms(url, joiner.join([head, *documents, text(64)]))
    shuffled, cached = [], 0
    for _ in range(rounds):
        dice.shuffle(documents)
        elapsed_ms, cached = ttft_ms(url, joiner.join([head, *documents, text(64)]))
        shuffled.append(elapsed_ms)
    prompt = 128 + n_documents * length
    return {"cold": cold, "shuffled": statistics.median(shuffled), "cached": cached / prompt}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--shapes", default="4x512")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--flags", default="", help="more flags for both servers")
    options = parser.parse_args()
    shapes = [tuple(map(int, shape.split("x"))) for shape in options.shapes.split(",")]
    print(
        "| documents | system | cold ms | shuffled ms | share from cache |\n|---|---|---|---|---|"
    )
    for system, flags in SYSTEMS.items():
        joiner = SEPARATOR if system == "segments" else ""
        log = Path(tempfile.mkdtemp()) / "log"
        every = (*flags, *options.flags.split())
        launcher = PLUGIN if system == "segments" else TEXT_ONLY
        with Engine(
            options.model,
            log,
            every,
            on_gpu=options.gpu,
            launcher=launcher,
            start_timeout_s=400,
        ) as engine:
            for count, length in shapes:
                row = measure(engine.url, joiner, count, length, options.rounds)
                numbers = f"{row['cold']:.0f} | {row['shuffled']:.0f} | {row['cached']:.3f}"
                print(f"| {count} x {length} | {system} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
