"""With segment caching on, prompts that have nothing to take get stock SGLang's tokens."""

import concurrent.futures
import random

import pytest

from .conftest import running
from .prompts import documents, joined, text

N_TOKENS = 8


@pytest.fixture(scope="module")
def stock(tiny, tmp_path_factory):
    """The same server without segment caching."""
    yield from running(tiny, tmp_path_factory, "--enable-cache-report", "--disable-radix-cache")


@pytest.fixture(scope="module")
def prompts() -> list[str]:
    dice = random.Random(5)
    return [text(dice, dice.choice((1, 2, 3, 7, 30, 64, 65, 100, 200))) for _ in range(20)]


@pytest.fixture(scope="module")
def wanted(stock, prompts):
    return [tokens(stock, prompt) for prompt in prompts]


def tokens(server, prompt, **fields) -> list[int]:
    return server.generate(prompt, n_tokens=N_TOKENS, **fields)["output_ids"]


def test_one_at_a_time(engine, prompts, wanted):
    assert [tokens(engine, prompt) for prompt in prompts] == wanted


def test_eight_at_once(engine, prompts, wanted):
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda prompt: tokens(engine, prompt), prompts)) == wanted


def test_plain_prompts_beside_prompts_of_segments(engine, prompts, wanted):
    engine.flush()
    mixed = [joined(*documents(6, 40, 90, 40), prompt) for prompt in prompts]
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        beside = threads.map(lambda prompt: tokens(engine, prompt), mixed)
        assert list(threads.map(lambda prompt: tokens(engine, prompt), prompts)) == wanted
        list(beside)


@pytest.mark.parametrize(
    "asks", [{"recompute": "all"}, {"recompute": [0, 1, 2]}, {"enabled": False}]
)
def test_everything_in_place_is_what_stock_computes_for_the_same_ids(engine, stock, asks):
    pieces = documents(7, 30, 120, 65, 20)
    ids = list("".join(pieces).encode())
    expected = tokens(stock, ids)
    assert tokens(engine, joined(*pieces), pic=asks) == expected
    assert tokens(engine, joined(*pieces)) is not None  # now its segments are there
    assert tokens(engine, joined(*pieces), pic=asks) == expected
