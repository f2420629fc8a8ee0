import asyncio
import logging
import time
from collections.abc import AsyncIterator

import pytest

from hypic_operator.errors import UnavailableError
from hypic_operator.wakeups import Key, Wakeups

ONE, OTHER = Key("ns", "one"), Key("ns", "other")


class Work:
    """What is called: counts, and ends as the test says."""

    def __init__(self) -> None:
        self.begun: list[Key] = []
        self.running: set[Key] = set()
        self.gate = asyncio.Event()
        self.gate.set()
        self.ends: list[float | Exception | None] = []
        self.changed = asyncio.Condition()

    async def __call__(self, key: Key) -> float | None:
        assert key not in self.running, "twice at once for the same key"
        self.running.add(key)
        self.begun.append(key)
        async with self.changed:
            self.changed.notify_all()
        await self.gate.wait()
        self.running.discard(key)
        end = self.ends.pop(0) if self.ends else 100.0
        if isinstance(end, Exception):
            raise end
        return end

    async def until_begun(self, times: int) -> None:
        async with asyncio.timeout(5), self.changed:
            await self.changed.wait_for(lambda: len(self.begun) >= times)


@pytest.fixture
async def work() -> Work:
    return Work()


@pytest.fixture
async def woken(work: Work) -> AsyncIterator[Wakeups]:
    found = Wakeups(first_retry_s=0.01)
    found.start(work)
    yield found
    await found.close()


async def _nothing_followed() -> None:
    """Wait until the tasks that follow keys have ended."""
    following = [task for task in asyncio.all_tasks() if task.get_name().startswith("follow ")]
    async with asyncio.timeout(5):
        await asyncio.gather(*following)


async def test_causes_that_come_together_are_one(work: Work, woken: Wakeups) -> None:
    for _ in range(10):
        woken.wake(ONE)
    woken.wake(OTHER)
    await work.until_begun(2)
    assert sorted(work.begun) == [ONE, OTHER]


async def test_a_cause_during_the_work_leads_to_one_more_look(work: Work, woken: Wakeups) -> None:
    work.gate.clear()
    woken.wake(ONE)
    await work.until_begun(1)
    for _ in range(3):
        woken.wake(ONE)
    work.gate.set()
    await work.until_begun(2)
    assert work.begun == [ONE, ONE]


async def test_different_keys_are_worked_on_at_once(work: Work, woken: Wakeups) -> None:
    work.gate.clear()
    woken.wake(ONE)
    woken.wake(OTHER)
    await work.until_begun(2)
    assert work.running == {ONE, OTHER}
    work.gate.set()


async def test_it_looks_again_after_the_time_it_was_told(work: Work, woken: Wakeups) -> None:
    work.ends = [0.01, 0.01]
    woken.wake(ONE)
    await work.until_begun(3)


async def test_a_key_that_is_gone_is_forgotten_until_it_is_woken_again(
    work: Work, woken: Wakeups
) -> None:
    work.ends = [None, None]
    woken.wake(ONE)
    await work.until_begun(1)
    await _nothing_followed()
    woken.wake(ONE)
    await work.until_begun(2)


async def test_a_failure_is_told_and_tried_again(
    work: Work, woken: Wakeups, caplog: pytest.LogCaptureFixture
) -> None:
    work.ends = [UnavailableError("status 503: busy"), ValueError("a bug")]
    with caplog.at_level(logging.WARNING):
        woken.wake(ONE)
        await work.until_begun(3)
    assert "status 503: busy" in caplog.messages[0]
    assert caplog.records[0].exc_info is None
    assert caplog.records[1].exc_info


async def test_an_api_server_that_says_when_to_ask_again_is_left_alone_whatever_the_cause(
    work: Work, woken: Wakeups
) -> None:
    work.ends = [UnavailableError("status 429: busy", retry_after_s=0.3)]
    woken.wake(ONE)
    await work.until_begun(1)
    failed_s = time.monotonic()
    woken.wake(ONE)
    await work.until_begun(2)
    assert time.monotonic() - failed_s >= 0.3


async def test_how_long_a_look_waited_for_its_turn_is_told(work: Work) -> None:
    told: list[float] = []
    found = Wakeups(at_once=1, waited=told.append)
    found.start(work)
    work.gate.clear()
    found.wake(ONE)
    await work.until_begun(1)
    found.wake(OTHER)
    await asyncio.sleep(0)
    work.gate.set()
    await work.until_begun(2)
    assert len(told) == 2
    assert all(0.0 <= waited_s < 5.0 for waited_s in told)
    await found.close()


async def test_nothing_is_called_before_it_is_said_what() -> None:
    found = Wakeups()
    found.wake(ONE)
    await _nothing_followed()
