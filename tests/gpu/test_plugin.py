"""The quick start and the oracle's cases on an accelerator, through the same code as on a CPU.

The chunk kernels of linear attention exist in bfloat16 only, so a token may differ from the fp32
oracle where two logits are close; how close is asserted, and every answer is printed.
"""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ..integration.engine.oracle_cases import SEPARATOR, Case, cases
from ..support.engine_server import Engine
from ..support.oracle import Model, Piece, Stream, forward, load, plan

SCRIPT = Path(__file__).parents[2] / "examples" / "tiny_model.py"
MODE = "transition_rope_recompute"
NEAR = 0.15


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    subprocess.run([sys.executable, SCRIPT, folder], check=True)
    return folder


@pytest.fixture(scope="module")
def engine(tiny, tmp_path_factory):
    log = tmp_path_factory.mktemp("engine") / "log"
    with Engine(tiny, log, on_gpu=True, start_timeout_s=300) as running:
        yield running
        assert "leak" not in log.read_text()


def test_the_quick_start_hits_its_two_documents(engine):
    eiffel = "The Eiffel Tower is in Paris, France."
    fuji = "Mount Fuji is the tallest mountain in Japan."
    engine.generate(eiffel, n_tokens=1)
    engine.generate(fuji, n_tokens=1)
    question = "Question: In which country is the Eiffel Tower?"
    prompt = SEPARATOR.join(["You are a helpful assistant.", eiffel, fuji, question])
    first = engine.generate(prompt)
    again = engine.generate(prompt)
    print("quick start", first["meta_info"]["pic"], again["meta_info"]["pic"])
    assert first["meta_info"]["cached_tokens"] == len(eiffel) - 8 + len(fuji) - 8
    assert again["output_ids"] == first["output_ids"]


def likeliness(model: Model, case: Case, chosen: int) -> float:
    """How far below the oracle's best logit the chosen token lies, in standard deviations."""
    wanted = case.recompute if case.recompute == "all" else frozenset(case.recompute)
    planned = plan(case.ids, mode=MODE, seam=8, min_tokens=6, recompute=wanted)
    if len(case.pieces) == 1:
        planned = [Piece(tuple(case.ids[0]), 0, len(case.ids[0]))]
    logits = forward(model, Stream(model), planned, MODE)
    return float(logits.max() - logits[chosen]) / float(logits.std())


def test_first_tokens_are_the_oracles_or_as_likely(engine, tiny):
    model, drawn, chosen = load(tiny), list(cases(seed=3, n_cases=24)), []
    for case in drawn:
        recompute = case.recompute if case.recompute == "all" else list(case.recompute)
        answer = engine.generate(case.text, n_tokens=1, pic={"recompute": recompute})
        chosen.append(answer["output_ids"][0])
    torch.set_num_threads(1)
    gaps = [likeliness(model, case, token) for case, token in zip(drawn, chosen, strict=True)]
    equal = sum(gap == 0 for gap in gaps)
    print(f"gpu oracle: {len(drawn)} cases, {equal} equal, largest gap {max(gaps):.3f} sigma")
    assert max(gaps) <= NEAR, gaps
