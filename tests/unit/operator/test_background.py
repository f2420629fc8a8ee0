"""Work beside the looks at clusters: one at a time for each, and no work is lost for ever."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from hypic_operator.pods.background import Background
from hypic_operator.wakeups import Key

KEY = Key("a", "demo")
OTHER = Key("b", "demo")


class _Work:
    """Work that ends when the test says so."""

    def __init__(self, *, news: bool = True) -> None:
        self.begun = 0
        self.go = asyncio.Event()
        self._news = news

    async def __call__(self) -> bool:
        self.begun += 1
        await self.go.wait()
        return self._news


async def _turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.parametrize("news", [True, False])
async def test_there_is_one_for_each_and_news_wake(news: bool) -> None:
    woken: list[Key] = []
    background, work = Background(woken.append), _Work(news=news)
    for key in (KEY, KEY, OTHER):
        background.begin(key, work)
    await _turn()
    assert (work.begun, background.busy(KEY), woken) == (2, True, [])
    work.go.set()
    await _turn()
    assert (background.busy(KEY), woken) == (False, [KEY, OTHER] if news else [])


async def _fails() -> bool:
    raise ValueError("a fault")


async def test_a_fault_is_logged_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    woken: list[Key] = []
    background = Background(woken.append)
    background.begin(KEY, _fails)
    await _turn()
    assert "a/demo: a fault of the operator's" in caplog.text
    assert (background.busy(KEY), woken) == (False, [])


def _close(background: Background) -> Awaitable[None]:
    return background.close()


async def _forget(background: Background) -> None:
    background.forget(KEY)


@pytest.mark.parametrize("give_up", [_close, _forget])
async def test_after_it_was_given_up_it_may_begin_again(
    give_up: Callable[[Background], Awaitable[None]],
) -> None:
    woken: list[Key] = []
    background, first, second = Background(woken.append), _Work(), _Work()
    background.begin(KEY, first)
    await _turn()
    await give_up(background)
    assert not background.busy(KEY)
    background.begin(KEY, second)
    await _turn()
    assert (second.begun, woken) == (1, [])
    first.go.set()
    second.go.set()
    await _turn()
    assert woken == [KEY]
