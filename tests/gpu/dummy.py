"""Public models' shapes with dummy weights, and engines that share one accelerator."""

import json
import random
import string
from pathlib import Path

import shapes

from ..support.engine_server import Engine

TOLERANCE = 0.05
PIC = ("--pic-enable", "--enable-cache-report", "--pic-memory-gib", "2")
DUMMY = ("--load-format", "dummy", "--random-seed", "1", "--context-length", "65536")
# Engines start side by side, so none of them may take what is left.
SIZES = (
    *("--mem-fraction-static", "0.9", "--max-total-tokens", "65536"),
    *("--max-mamba-cache-size", "64"),
)
# Qwen3.5 without pictures is stock SGLang; Ring it knows by the plugin alone, which is off then.
STOCK = (str(Path(shapes.__file__).with_name("text_only_server.py")),)
WITH_PLUGIN = ("-m", "sglang.launch_server")
LAUNCHERS = {"qwen35b": STOCK, "ring_mini": WITH_PLUGIN}

Answer = tuple[list[int], float]
"""Tokens, and the first one's log-probability."""


def document(n_tokens: int, seed: int) -> str:
    return "".join(random.Random(seed).choices(string.ascii_lowercase + " ", k=n_tokens))


def shortened(folder: Path, model: str, n_layers: int) -> Path:
    """The model with its first layers only, which starts in seconds."""
    shapes.write(folder, model)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    text = config.get("text_config", config)
    text["num_hidden_layers"] = n_layers
    if "layer_types" in text:
        text["layer_types"] = text["layer_types"][:n_layers]
    path.write_text(json.dumps(config))
    return folder


def with_segments(folder: Path, log: Path, **variables: str) -> Engine:
    """An engine that caches segments."""
    flags = (*DUMMY, *SIZES, *PIC)
    return Engine(folder, log, flags, on_gpu=True, start_timeout_s=400, variables=variables)


def without_segments(folder: Path, log: Path, launcher: tuple[str, ...]) -> Engine:
    """The same server with caching off."""
    off = ("--disable-radix-cache", "--chunked-prefill-size", "-1")
    flags = (*DUMMY, *SIZES, *off)
    return Engine(folder, log, flags, on_gpu=True, start_timeout_s=400, launcher=launcher)


def answer(engine: Engine, prompt: str, **fields: object) -> Answer:
    got = engine.generate(prompt, return_logprob=True, **fields)
    return got["output_ids"], got["meta_info"]["output_token_logprobs"][0][0]


def alike(one: Answer, other: Answer) -> bool:
    return one[0] == other[0] and abs(one[1] - other[1]) <= TOLERANCE
