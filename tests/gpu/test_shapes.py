"""The layer shapes of public models with dummy weights: memory, reuse in another order, no leak.

Dummy weights say nothing sensible, so log-probabilities are compared beside tokens.
"""

import concurrent.futures
import json
import random
import string
import time
from pathlib import Path

import pytest
import shapes

from ..integration.engine.oracle_cases import SEPARATOR
from ..support.engine_server import Engine

MIB = 1 << 20
TOLERANCE = 0.05
LAYERS = 8
PIC = ("--pic-enable", "--enable-cache-report")
DUMMY = ("--load-format", "dummy", "--random-seed", "1", "--context-length", "65536")
LAUNCHER = Path(shapes.__file__).with_name("text_only_server.py")


def document(n_tokens: int, seed: int) -> str:
    return "".join(random.Random(seed).choices(string.ascii_lowercase + " ", k=n_tokens))


def started(folder: Path, log: Path, *flags: str, memory: str, **fields) -> Engine:
    all_flags = (*DUMMY, "--mem-fraction-static", memory, *flags)
    return Engine(folder, log, all_flags, on_gpu=True, start_timeout_s=300, **fields)


def answer(engine: Engine, prompt: str, **fields) -> tuple[list[int], float]:
    """Tokens, and the first one's log-probability."""
    got = engine.generate(prompt, return_logprob=True, **fields)
    return got["output_ids"], got["meta_info"]["output_token_logprobs"][0][0]


def alike(one, other):
    return one[0] == other[0] and abs(one[1] - other[1]) <= TOLERANCE


@pytest.fixture(scope="module")
def few_layers(tmp_path_factory) -> Path:
    """Qwen3.5-35B-A3B with 8 of its 40 layers, which start in seconds."""
    folder = tmp_path_factory.mktemp("models") / "few"
    shapes.write(folder, "qwen35b")
    config = json.loads((folder / "config.json").read_text())
    text = config["text_config"]
    text |= {"num_hidden_layers": LAYERS, "layer_types": text["layer_types"][:LAYERS]}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.usefixtures("free_memory")
def test_without_segments_the_tokens_are_those_of_a_server_without_them(few_layers, tmp_path):
    documents = [document(300, seed) for seed in range(3)]
    with (
        started(
            few_layers,
            tmp_path / "off",
            *("--disable-radix-cache", "--chunked-prefill-size", "-1"),
            memory="0.3",
            launcher=(str(LAUNCHER),),
        ) as off,
        started(few_layers, tmp_path / "on", *PIC, memory="0.6") as on,
    ):
        plain = [answer(off, "".join(documents[i:])) for i in range(3)]
        assert all(alike(answer(on, "".join(documents[i:])), plain[i]) for i in range(3))
        cut = SEPARATOR.join(documents)
        assert alike(answer(on, cut, pic={"recompute": "all"}), plain[0])
        many_leave_nothing_behind(on)


def many_leave_nothing_behind(engine: Engine) -> None:
    """500 requests over 12 documents, 8 at a time; what is held then, the cache holds."""
    documents = [document(200, seed) for seed in range(100, 112)]
    dice = random.Random(5)
    prompts = [
        SEPARATOR.join([*dice.sample(documents, dice.randrange(1, 5)), document(20, 1000 + i)])
        for i in range(500)
    ]
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda prompt: engine.generate(prompt, n_tokens=2), prompts))
    info = engine.info
    print(f"500 requests in {time.monotonic() - start:.0f} s", info)
    slots = info["operator_slots"]
    assert info["pinned_segments"] == 0
    assert slots["total"] - slots["free"] == info["segments"]
    engine.flush()
    assert engine.info["operator_slots"]["free"] == slots["total"]
    assert "memory leak" not in engine.log.read_text()


@pytest.mark.usefixtures("free_memory")
@pytest.mark.parametrize(("model", "most_mib"), [("qwen35b", 62), ("ring_mini", 8.01)])
def test_documents_are_found_in_another_order(model, most_mib, tmp_path):
    shapes.write(tmp_path / model, model)
    documents = [document(1024, seed) for seed in range(4)]
    head, query = document(64, 50), document(64, 51)
    with started(tmp_path / model, tmp_path / "log", *PIC, memory="0.85") as engine:
        for one in documents[1:]:
            engine.generate(one, n_tokens=1)
        backwards = SEPARATOR.join([head, *reversed(documents), query])
        cold = answer(engine, backwards)
        engine.generate(SEPARATOR.join([head, *documents, query]), n_tokens=1)
        cached = engine.generate(backwards)
        again = answer(engine, backwards)
        info = engine.info
        of_operators = info["bytes"] - info["tokens"] * token_bytes(model)
        per_segment = of_operators / info["segments"] / MIB
        print(f"{model}: operators of a segment {per_segment:.1f} MiB;", cached["meta_info"]["pic"])
        assert cached["meta_info"]["pic"]["segments"]["hit"] == len(documents) + 1
        assert cached["output_ids"] == cold[0]
        assert alike(again, cold)
        assert per_segment <= most_mib
        assert "memory leak" not in engine.log.read_text()


def token_bytes(model: str) -> int:
    """Of keys and values in bfloat16."""
    config = shapes.MODELS[model]()
    config = config.get("text_config", config)
    group = config.get("layer_group_size", 4)
    n_layers = config["num_hidden_layers"] // group
    return n_layers * 2 * config["num_key_value_heads"] * config["head_dim"] * 2
