import asyncio

import pytest

from hypic_router.asking.patience import Patience
from hypic_router.errors import ClosingError, LostError


async def test_a_wait_ends_at_once_when_it_is_given_up():
    patience = Patience()
    asyncio.get_running_loop().call_soon(patience.give_up, LostError("gone"))
    with pytest.raises(TimeoutError):
        async with patience.within(60):
            await asyncio.Event().wait()
    assert isinstance(patience.given_up, LostError)


async def test_news_between_two_waits_ends_the_next_one():
    patience = Patience()
    async with patience.within(60):
        pass
    patience.give_up(ClosingError("ends"))
    patience.give_up(LostError("too late to matter"))
    with pytest.raises(TimeoutError):
        async with patience.within(60):
            await asyncio.Event().wait()
    assert isinstance(patience.given_up, ClosingError)


async def test_what_was_given_up_is_not_renewed():
    patience, loop = Patience(), asyncio.get_running_loop()
    loop.call_soon(patience.give_up, LostError("gone"))
    loop.call_soon(patience.renew, loop.time() + 60)
    with pytest.raises(TimeoutError):
        async with patience.within(60):
            await asyncio.Event().wait()
