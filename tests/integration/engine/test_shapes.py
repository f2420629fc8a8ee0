"""The public models' configurations, read by SGLang and sized; no weights, no engine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hypic_engine.plugin.models import families
from hypic_engine.plugin.runner.pool import Shape

ROOT = Path(__file__).parents[3]
READ = """
import json, sys
from sglang.srt.plugins import load_plugins
load_plugins()
from sglang.srt.layers import dp_attention
dp_attention.get_attention_tp_size = lambda: 1
from sglang.srt.utils.hf_transformers import get_config
found = {}
for folder in sys.argv[1:]:
    config = get_config(folder, trust_remote_code=False)
    text = config.get_text_config()
    params = text.mamba2_cache_params
    found[folder] = {
        "type": type(config).__name__,
        "architecture": config.architectures[0],
        "layers": len(params.layers),
        "state": params.shape.temporal,
        "conv_dim": params.shape.conv[0][0],
        "full": len(text.full_attention_layer_ids),
    }
print(json.dumps(found))
"""
MIB = 1 << 20
# In bfloat16: 30 layers of 32 heads with a state and a transition of 128 x 128, and so on.
OPERATORS_MIB = {"qwen35b": 61.4, "qwen122b": 146.5, "ring_mini": 8.0, "ring_flash": 28.0}

# Billions of parameters, in all and without embeddings for one token, as their makers state them.
PARAMETERS = {
    "qwen35b": (35, 3),
    "qwen122b": (122, 10),
    "ring_mini": (16, 0.957),
    "ring_flash": (104, 6.1),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("shapes")
    script = ROOT / "benchmarks" / "shapes.py"
    for model in OPERATORS_MIB:
        subprocess.run([sys.executable, script, made / model, "--model", model], check=True)
    return made


@pytest.fixture(scope="module")
def read(folder):
    command = [sys.executable, "-c", READ, *(folder / model for model in OPERATORS_MIB)]
    done = subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"SGLANG_USE_CPU_ENGINE": "1"},
    )
    found = json.loads(done.stdout.splitlines()[-1])
    return {Path(path).name: facts for path, facts in found.items()}


@pytest.mark.parametrize(("model", "mib"), OPERATORS_MIB.items())
def test_a_segments_operators_have_the_size_that_is_documented(read, model, mib):
    facts = read[model]
    family = families.of([facts["architecture"]])
    heads, rows, columns = facts["state"]
    shape = Shape(
        facts["layers"],
        heads,
        (rows, columns),
        columns if family.stores_transitions else 0,
        facts["conv_dim"],
        torch.bfloat16,
    )
    assert shape.n_bytes(torch.bfloat16) / MIB == pytest.approx(mib, abs=0.1)


@pytest.mark.parametrize(
    ("model", "linear", "full"),
    [("qwen35b", 30, 10), ("qwen122b", 36, 12), ("ring_mini", 16, 4), ("ring_flash", 28, 4)],
)
def test_linear_and_full_layers_are_told_apart(read, model, linear, full):
    assert (read[model]["layers"], read[model]["full"]) == (linear, full)


def test_ring_is_read_by_the_plugins_configuration(read):
    assert read["ring_mini"]["type"] == read["ring_flash"]["type"] == "RingLinearConfig"


def parameters(config, n_experts):
    """Of matrices, with so many experts a layer; without embeddings."""
    hidden, heads, dim = (config[x] for x in ("hidden_size", "num_attention_heads", "head_dim"))
    kv_heads, n_layers = config["num_key_value_heads"], config["num_hidden_layers"]
    moe = 3 * hidden * config["moe_intermediate_size"] * (n_experts + 1)  # one is shared
    if "layer_group_size" in config:
        n_full = n_layers // config["layer_group_size"]
        full, linear = hidden * dim * 2 * (heads + kv_heads), hidden * dim * 5 * heads
        n_dense = config["first_k_dense_replace"]
    else:
        n_full, n_dense = config["layer_types"].count("full_attention"), 0
        full = hidden * dim * (3 * heads + 2 * kv_heads)
        key = config["linear_num_key_heads"] * config["linear_key_head_dim"]
        value = config["linear_num_value_heads"] * config["linear_value_head_dim"]
        linear = hidden * (2 * key + 3 * value)
    dense = 3 * hidden * config["intermediate_size"] * n_dense
    return n_full * full + (n_layers - n_full) * linear + (n_layers - n_dense) * moe + dense


@pytest.mark.parametrize(("model", "stated"), PARAMETERS.items())
def test_a_shape_has_as_many_parameters_as_its_model(folder, model, stated):
    config = json.loads((folder / model / "config.json").read_text())
    config = config.get("text_config", config)
    embeddings = 2 * config["vocab_size"] * config["hidden_size"]
    total = parameters(config, config["num_experts"]) + embeddings
    active = parameters(config, config["num_experts_per_tok"])
    print(f"{model}: {total / 1e9:.2f} billion parameters, {active / 1e9:.2f} for a token")
    assert total / 1e9 == pytest.approx(stated[0], rel=0.03)
    assert active / 1e9 == pytest.approx(stated[1], rel=0.25)
