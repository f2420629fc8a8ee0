"""The status page, in headless Chromium on a small screen."""

import asyncio
import json

import pytest

from ...support import clients
from ...support.fake_engine import FakeEngine
from ...support.routers import routing
from ...support.wire import ask, eventually

SEP = "<<PIC_SEP>>"
SECRET = "Only the harbour master knows this. " * 8


@pytest.fixture
async def seen(tmp_path):
    """What a person sees once two engines have served, one of which is not ready any more."""
    name = "<script>alert(1)</script>"
    async with FakeEngine() as one, FakeEngine() as two, routing([one.url, two.url]) as router:
        for question in ("When?", "Where?", "Why?"):
            body = {"text": SEP.join(["Answer.", SECRET, question])}
            assert (await ask(router.url, "/generate", body)).status == 200
        two.ready = (503, {"reason": f"weights are loading {name}"})

        async def unready():
            return "unready" in await router.states()

        await eventually(unready)
        picture = tmp_path / "page.png"
        command = ["node", clients.script("page.mjs"), router.metrics_url + "/", str(picture)]
        found = json.loads(await asyncio.to_thread(clients.run, command))
        yield found | {"picture": picture, "url": router.metrics_url + "/", "name": name}


async def test_the_page_shows_the_fleet_on_a_phone_and_loads_nothing_else(seen):
    text = seen["text"]
    assert seen["title"] == "hypic router: tiny"
    assert "1 of 2 engines ready, policy segment" in text
    assert "of the prompt tokens of the last 3 requests" in text
    assert "found in cache 0 %" not in text
    assert "weights are loading" in text
    assert "asked for by" in text
    assert "holds 2 of 2 segments" in text
    assert seen["width"] <= seen["room"] == 360
    assert seen["smallest"] >= 12
    assert seen["loaded"] == [seen["url"]]
    assert seen["complaints"] == []
    assert seen["picture"].stat().st_size > 10_000
    # Words of engines are shown as text, and prompts not at all.
    assert seen["name"] in text
    assert seen["scripts"] == 0
    assert "harbour" not in text
