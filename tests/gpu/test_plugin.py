"""The quick start and the oracle's cases on an accelerator, through the same code as on a CPU.

The chunk kernels of linear attention exist in bfloat16 only, so a token may differ from the fp32
oracle where two logits are close; how close is asserted, and every answer is printed.
"""

import concurrent.futures
import multiprocessing
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
import tiny_model

from ..integration.engine.oracle_cases import SEPARATOR, asked, cases, first_logits
from ..support.engine_server import Engine, together

MODE = "transition_rope_recompute"
NEAR = 0.15
SIZES = (
    *("--mem-fraction-static", "0.9", "--max-total-tokens", "16384"),
    *("--max-mamba-cache-size", "64", "--pic-memory-gib", "0.5"),
)
FLAGS = ("--pic-enable", "--enable-cache-report", *SIZES)
REFERENCES = {"HYPIC_REFERENCE_OPS": "1"}
FAMILIES = ("qwen3.5", "qwen3-next", "ring", "bailing-v2.5")


@dataclass(frozen=True)
class Served:
    """A tiny model on two engines: one runs kernels, one their references."""

    folder: Path
    kernels: Engine
    references: Engine

    @property
    def engines(self) -> tuple[Engine, Engine]:
        return self.kernels, self.references


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """All families, every engine started once."""
    models, logs = tmp_path_factory.mktemp("models"), tmp_path_factory.mktemp("engines")

    def engine(family: str, name: str, **variables: str) -> Engine:
        log = logs / f"{family}-{name}"
        return Engine(
            models / family, log, FLAGS, on_gpu=True, start_timeout_s=400, variables=variables
        )

    families = {}
    for family in FAMILIES:
        tiny_model.publish(models / family, family)
        pair = engine(family, "kernels"), engine(family, "references", **REFERENCES)
        families[family] = Served(models / family, *pair)
    started = [one for family in families.values() for one in family.engines]
    with together(*started):
        yield families
    for one in started:
        assert "memory leak" not in one.log.read_text()


@pytest.fixture(scope="module")
def processes():
    """The oracle is slow; these share its work."""
    spawned = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count(), spawned) as pool:
        yield pool


@pytest.mark.parametrize("family", FAMILIES)
def test_the_quick_start_hits_its_two_documents(served, family):
    engine = served[family].kernels
    eiffel = "The Eiffel Tower is in Paris, France."
    fuji = "Mount Fuji is the tallest mountain in Japan."
    engine.generate(eiffel, n_tokens=1)
    engine.generate(fuji, n_tokens=1)
    question = "Question: In which country is the Eiffel Tower?"
    prompt = SEPARATOR.join(["You are a helpful assistant.", eiffel, fuji, question])
    first = engine.generate(prompt)
    again = engine.generate(prompt)
    print("quick start", family, first["meta_info"]["pic"], again["meta_info"]["pic"])
    assert first["meta_info"]["cached_tokens"] == len(eiffel) - 8 + len(fuji) - 8
    assert again["output_ids"] == first["output_ids"]


@pytest.mark.parametrize("family", FAMILIES)
def test_first_tokens_are_the_oracles_or_as_likely(served, processes, family):
    drawn = cases(seed=3, n_cases=16)
    folder, engines = served[family].folder, served[family].engines
    expected = [processes.submit(first_logits, folder, case, MODE) for case in drawn]
    by_engine = [[asked(engine, case) for case in drawn] for engine in engines]
    gaps = []
    for tokens in by_engine:
        for answer, logits in zip(tokens, (one.result() for one in expected), strict=True):
            below = logits.max() - logits[answer[0]]
            gaps.append(float(below / logits.std()))
    equal = sum(gap == 0 for gap in gaps)
    alike = sum(one[0] == other[0] for one, other in zip(*by_engine, strict=True))
    print(
        f"{family}: {len(gaps)} first tokens, {equal} the oracle's, largest gap {max(gaps):.3f} "
        f"sigma; of kernels and references {alike} of {len(drawn)} equal"
    )
    assert max(gaps) <= NEAR, gaps
    assert alike >= len(drawn) - 1
