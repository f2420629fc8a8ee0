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


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shapes")
    script = ROOT / "benchmarks" / "shapes.py"
    for model in OPERATORS_MIB:
        subprocess.run([sys.executable, script, folder / model, "--model", model], check=True)
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
