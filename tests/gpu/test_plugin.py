"""The quick start and the oracle's cases on an accelerator, through the same code as on a CPU.

The chunk kernels of linear attention exist in bfloat16 only, so a token may differ from the fp32
oracle where two logits are close; how close is asserted, and every answer is printed.
"""

import pytest
import tiny_model
import torch

from ..integration.engine.oracle_cases import SEPARATOR, Case, asked, cases
from ..support.engine_server import Engine
from ..support.oracle import Model, Piece, Stream, forward, load, plan

MODE = "transition_rope_recompute"
NEAR = 0.15
FLAGS = ("--pic-enable", "--enable-cache-report")
REFERENCES = {"HYPIC_REFERENCE_OPS": "1"}
# SGLang's Triton kernel for latent rows compiles for the sizes of real models only.
FAMILIES = ("qwen3.5", "ring")


@pytest.fixture(scope="module", params=FAMILIES)
def engines(request, tmp_path_factory):
    """One engine on kernels, one on references; each sizes its memory by what the other left."""
    folder = tmp_path_factory.mktemp("models") / request.param
    tiny_model.publish(folder, request.param)
    logs = tmp_path_factory.mktemp("engines")

    def made(name: str, memory: str, variables: dict[str, str]) -> Engine:
        flags = (*FLAGS, "--mem-fraction-static", memory)
        log = logs / name
        return Engine(folder, log, flags, on_gpu=True, start_timeout_s=300, variables=variables)

    with made("kernels", "0.2", {}) as kernels, made("references", "0.5", REFERENCES) as references:
        yield load(folder), kernels, references
    for engine in (kernels, references):
        assert "memory leak" not in engine.log.read_text()


def test_the_quick_start_hits_its_two_documents(engines):
    _, engine, _ = engines
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
    recompute = case.recompute if case.recompute == "all" else frozenset(case.recompute)
    planned = plan(case.ids, mode=MODE, seam=8, min_tokens=6, recompute=recompute)
    if len(case.ids) == 1:
        planned = [Piece(tuple(case.ids[0]), 0, len(case.ids[0]))]
    logits = forward(model, Stream(model), planned, MODE)
    return float(logits.max() - logits[chosen]) / float(logits.std())


def test_first_tokens_are_the_oracles_or_as_likely(engines):
    model, *started = engines
    drawn = cases(seed=3, n_cases=16)
    torch.set_num_threads(1)
    by_engine = [[asked(engine, case)[0] for case in drawn] for engine in started]
    gaps = [
        likeliness(model, case, token)
        for tokens in by_engine
        for case, token in zip(drawn, tokens, strict=True)
    ]
    equal = sum(gap == 0 for gap in gaps)
    alike = sum(one == other for one, other in zip(*by_engine, strict=True))
    print(
        f"gpu oracle: {len(gaps)} answers, {equal} equal, largest gap {max(gaps):.3f} sigma; "
        f"kernels and references: {alike} of {len(drawn)} equal"
    )
    assert max(gaps) <= NEAR, gaps
    assert alike >= len(drawn) - 1
