"""One fake engine, and a router in front of it."""

import pytest

from ...support.fake_engine import FakeEngine
from ...support.routers import routing


@pytest.fixture
async def engine():
    async with FakeEngine() as engine:
        yield engine


@pytest.fixture
async def router(engine):
    async with routing([engine.url], cors_origins=("https://chat.example.test",)) as router:
        yield router
