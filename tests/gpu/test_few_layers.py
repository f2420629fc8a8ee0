"""A few layers of public models' shapes: without segments, on kernels, on references.

Dummy weights say nothing sensible, so log-probabilities are compared beside tokens.
"""

import concurrent.futures
import random
import time
from dataclasses import dataclass

import pytest

from ..integration.engine.oracle_cases import SEPARATOR
from ..support.engine_server import Engine, together
from .dummy import (
    LAUNCHERS,
    TOLERANCE,
    alike,
    answer,
    document,
    shortened,
    with_segments,
    without_segments,
)

LAYERS = {"qwen35b": 8, "ring_mini": 5}


@dataclass(frozen=True)
class Served:
    """One model on three engines."""

    off: Engine
    kernels: Engine
    references: Engine


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """All models, every engine started once."""
    models, logs = tmp_path_factory.mktemp("models"), tmp_path_factory.mktemp("engines")
    by_model = {}
    for model, n_layers in LAYERS.items():
        folder = shortened(models / model, model, n_layers)
        by_model[model] = Served(
            without_segments(folder, logs / f"{model}-off", LAUNCHERS[model]),
            with_segments(folder, logs / f"{model}-kernels"),
            with_segments(folder, logs / f"{model}-references", HYPIC_REFERENCE_OPS="1"),
        )
    started = [x for one in by_model.values() for x in (one.off, one.kernels, one.references)]
    with together(*started):
        yield by_model
    for engine in started:
        assert "memory leak" not in engine.log.read_text()


@pytest.mark.parametrize("model", LAYERS)
def test_without_segments_the_tokens_are_those_of_a_server_without_them(served, model):
    off, on = served[model].off, served[model].kernels
    documents = [document(300, seed) for seed in range(3)]
    plain = [answer(off, "".join(documents[i:])) for i in range(3)]
    same = [answer(on, "".join(documents[i:])) for i in range(3)]
    again = answer(on, SEPARATOR.join(documents), pic={"recompute": "all"})
    compared = [*zip(same, plain, strict=True), (again, plain[0])]
    report(f"{model}: with segments and without", compared)
    assert all(alike(*pair) for pair in compared)


def report(what, compared):
    equal = sum(one[0] == other[0] for one, other in compared)
    apart = max(abs(one[1] - other[1]) for one, other in compared)
    print(f"{what}: {equal} of {len(compared)} answers equal, log-probabilities {apart:.4f} apart")
    return equal, apart


@pytest.mark.parametrize("model", LAYERS)
def test_references_give_the_tokens_that_kernels_give(served, model):
    documents = [document(1 + 97 * seed % 400, seed) for seed in range(20, 28)]
    dice = random.Random(3)
    prompts = [
        SEPARATOR.join([*dice.sample(documents, dice.randrange(1, 6)), document(40, 60 + i)])
        for i in range(12)
    ]
    engines = served[model].kernels, served[model].references
    answers = [[answer(engine, prompt) for prompt in prompts] for engine in engines]
    compared = list(zip(*answers, strict=True))
    equal, apart = report(f"{model}: kernels and references", compared)
    assert apart <= TOLERANCE
    assert equal >= len(prompts) - 1


@pytest.mark.parametrize("model", LAYERS)
def test_500_requests_leave_nothing_behind(served, model):
    """Over 12 documents, 8 at a time; what is held then, the cache holds."""
    engine = served[model].kernels
    engine.flush()
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
    print(f"{model}: 500 requests in {time.monotonic() - start:.0f} s", info)
    slots = info["operator_slots"]
    assert info["pinned_segments"] == 0
    assert slots["total"] - slots["free"] == info["segments"]
    engine.flush()
    assert engine.info["operator_slots"]["free"] == slots["total"]
    assert "memory leak" not in engine.log.read_text()
