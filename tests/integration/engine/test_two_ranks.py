"""Two ranks of tensor parallelism decide alike: what waits, what is filled, what is evicted.

A rank that decides otherwise computes another batch than its peer, and both hang in a collective or
answer other tokens than the oracle.
"""

import concurrent.futures

import pytest

from ...support.oracle import load
from .conftest import PIC, running, written
from .oracle_cases import asked, cases, wanted
from .prompts import documents, joined
from .test_memory import everything_is_free
from .test_orders import digest, found, told, warmed

MEMORY = ("--max-total-tokens", "1400", "--pic-memory-gib", "0.01")
# SGLang shares out cores by NUMA node, and takes NCCL where torch brought it along.
ON_CPUS = {"SGLANG_CPU_OMP_THREADS_BIND": "0|1", "SGLANG_NCCL_SO_PATH": "/dev/null"}


TWO = (*PIC, *MEMORY, "--tensor-parallel-size", "2")


@pytest.fixture(scope="module")
def ranks(tiny, tmp_path_factory):
    yield from running(tiny, tmp_path_factory, *TWO, **ON_CPUS)


def test_two_ranks_have_the_oracle_s_tokens_while_segments_come_and_go(ranks, model):
    drawn = [case for case in cases(seed=4, n_cases=40) if sum(map(len, case.ids)) < 500]
    with concurrent.futures.ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda case: asked(ranks, case), drawn))
    assert answers == [wanted(model, case) for case in drawn]
    assert everything_is_free(ranks)


def test_two_ranks_of_a_lightning_model_share_its_heads_and_their_decay(tmp_path_factory):
    folder = written("ring", tmp_path_factory)
    drawn = [case for case in cases(seed=6, n_cases=12) if sum(map(len, case.ids)) < 400]
    for started in running(folder, tmp_path_factory, *TWO, **ON_CPUS):
        answers = [asked(started, case) for case in drawn]
        assert everything_is_free(started)
    assert answers == [wanted(load(folder), case) for case in drawn]


def test_both_ranks_obey_an_order_at_the_same_point(ranks, model):
    kept, gone = documents(180, 60, 60)
    warmed(ranks, kept, gone)
    assert told(ranks, "/pic/pin", {"digests": [digest(ranks, kept)]})[1]["segments"] == 1
    assert told(ranks, "/pic/evict", {"digests": [digest(ranks, gone)]})[1]["segments"] == 1
    for seed in range(181, 185):
        ranks.generate(joined(*documents(seed, 220, 220), "question"))
    assert found(ranks, kept, gone) == len(kept)
    case = cases(seed=5, n_cases=1)[0]
    assert asked(ranks, case) == wanted(model, case)
