"""Find the first layer in which reusing segments differs from computing everything.

    python examples/layer_divergence.py MODEL [--mode transition_rope] [--tolerance 0.001]

Asks for one prompt twice, all of it computed and then assembled from cached segments, and compares
what each layer leaves of the last token. With isolated segments some difference is meant: later
layers see documents that did not see each other. A wrong operator shows as a jump in one layer.
"""

import argparse
import random
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from hypic_engine import Engine

N_PIECES, N_TOKENS = 4, 96
LAYER = re.compile(r"\blayers\.(\d+)\.post_attention_layernorm$")


def ask(engine: Engine, recompute: Any) -> dict[str, Any]:
    """The answer to the one prompt."""
    dice = random.Random(7)
    ids = [dice.randrange(32, 127) for _ in range(N_PIECES * N_TOKENS)]
    pic = {"segment_ends": [*range(N_TOKENS, len(ids), N_TOKENS)], "recompute": recompute}
    sampling = {"temperature": 0, "max_new_tokens": 1, "custom_params": {"pic": pic}}
    answer: dict[str, Any] = engine.generate(input_ids=ids, sampling_params=sampling)
    return answer


def last_token(folder: Path) -> dict[int, torch.Tensor]:
    """What the latest forward pass left of its last token, by layer: hidden and residual."""
    latest = max(folder.rglob("Pass*.pt"), key=lambda path: path.name)
    found = {}
    for name, value in torch.load(latest).items():
        if layer := LAYER.search(name):
            parts = value if isinstance(value, list) else [value]
            found[int(layer[1])] = parts[-1][-1].float()
    return found


def differences(model: str, mode: str) -> tuple[int, dict[int, float]]:
    """Tokens that came from the cache, and each layer's relative difference."""
    with tempfile.TemporaryDirectory() as folder:
        dumps = {"debug_tensor_dump_output_folder": folder, "disable_overlap_schedule": True}
        with Engine(model_path=model, pic_enable=True, pic_mode=mode, **dumps) as engine:
            ask(engine, [])  # now its segments are cached
            ask(engine, "all")
            whole = last_token(Path(folder))
            n_reused = ask(engine, [])["meta_info"]["cached_tokens"]
            assembled = last_token(Path(folder))
    return n_reused, {
        layer: float((assembled[layer] - one).norm() / one.norm()) for layer, one in whole.items()
    }


def main() -> int:
    """Print a line a layer; 1 when nothing could be compared."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", metavar="MODEL", help="folder of a hybrid model")
    parser.add_argument("--mode", default="transition_rope_recompute", help="default: %(default)s")
    parser.add_argument("--tolerance", type=float, default=1e-3, help="default: %(default)s")
    given = parser.parse_args()
    n_reused, by_layer = differences(str(Path(given.model).resolve()), given.mode)
    if not n_reused or not by_layer:
        print("nothing came from the cache, or no layer was seen", file=sys.stderr)
        return 1
    print(f"{n_reused} of {N_PIECES * N_TOKENS} tokens came from the cache")
    for layer, difference in sorted(by_layer.items()):
        print(f"layer {layer:3}: {difference:.6f}")
    first = next((n for n, d in sorted(by_layer.items()) if d > given.tolerance), None)
    print("no layer differs" if first is None else f"layer {first} is the first that differs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
