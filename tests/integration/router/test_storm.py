"""Everything goes wrong at once: what each client saw of its own request is counted."""

import asyncio
import itertools
import json
import time
from collections import Counter

from hypic_router.settings import Limits

from ...support.fake_engine import END, SSE_HEAD, FakeEngine, event, plain, resets_at_once, token
from ...support.routers import chat, routing
from ...support.wire import ask, reset

N_TOKENS, N_REQUESTS, N_CLIENTS = 12, 240, 8
LIMITS = Limits(first_byte_s=1.5, idle_s=1.0)
DRAINING = plain(503, {"message": "draining"}, b"X-Hypic-Draining: 1")
NOT_HTTP = b"\x16\x03\x01 what is this\r\n\r\n"


async def whole(turn):
    await turn.send(SSE_HEAD, *(event(token(f"{n} ")) for n in range(N_TOKENS)))
    await turn.send(event(token("", "stop")), event(b"[DONE]"), END)


async def slow(turn):
    await asyncio.sleep(0.2)
    await whole(turn)


async def garbage(turn):
    await turn.send(NOT_HTTP)
    return True


async def draining(turn):
    await turn.send(DRAINING)


async def cut(turn):
    await turn.send(SSE_HEAD, *(event(token(f"{n} ")) for n in range(5)))
    await asyncio.sleep(0.05)  # let the bytes leave the kernel before the reset discards them
    reset(turn.writer)
    return True


async def silent(turn):
    await turn.send(SSE_HEAD, *(event(token(f"{n} ")) for n in range(7)))
    await turn.left()
    return True


async def hung(turn):
    await turn.left()
    return True


TROUBLES = (resets_at_once, cut, garbage, draining, slow, silent, hung)


def seen(reply):
    """What a client makes of its stream: the numbers in it, and how it ended."""
    if reply.status != 200:
        return [], reply.status
    events = [json.loads(one) if one != b"[DONE]" else one for one in reply.events()]
    last = "whole" if events[-1] == b"[DONE]" else events[-1]["error"]["code"]
    words = "".join(one["choices"][0]["delta"]["content"] for one in events[:-1])
    return [int(word) for word in words.split()], last


async def test_every_request_that_could_be_saved_is_and_no_token_comes_twice_or_out_of_order():
    done = Counter()
    # A right answer after each trouble, so that no breaker hides the engine for long.
    course = itertools.cycle([one for trouble in TROUBLES for one in (trouble, whole)])

    async def troubled(turn):
        behave = next(course)
        done[behave.__name__] += 1
        return await behave(turn)

    endings, slowest_s = Counter(), 0.0
    async with FakeEngine(behave=troubled) as one, FakeEngine(behave=whole) as other:
        async with routing([one.url, other.url], policy="round_robin", limits=LIMITS) as router:
            names = iter(range(N_REQUESTS))

            async def client():
                nonlocal slowest_s
                for name in names:
                    began_s = time.monotonic()
                    body = chat(f"{name}", stream=True)
                    reply = await ask(router.url, "/v1/chat/completions", body)
                    slowest_s = max(slowest_s, time.monotonic() - began_s)
                    numbers, ending = seen(reply)
                    endings[ending] += 1
                    assert reply.clean
                    assert numbers == list(range(len(numbers)))
                    assert ending != "whole" or len(numbers) == N_TOKENS

            await asyncio.gather(*(client() for _ in range(N_CLIENTS)))
            late = await router.metric('hypic_router_errors_total{reason="engine_late"}')
            broken = await router.metric('hypic_router_errors_total{reason="engine_broken"}')
        asked = Counter(request.body for request in one.generated + other.generated)
    print(f"storm: {dict(endings)}, slowest {slowest_s:.2f} s; of the engine: {dict(done)}")
    assert all(done[trouble.__name__] for trouble in TROUBLES)
    # Only what had reached its client, or was let wait to the limit, could not be saved.
    assert endings["engine_broken"] == broken == done["cut"]
    assert endings[504] == done["hung"]
    assert endings["engine_late"] == done["silent"]
    assert late == done["hung"] + done["silent"]
    assert endings["whole"] == N_REQUESTS - done["cut"] - done["hung"] - done["silent"]
    again = sum(count - 1 for count in asked.values())
    assert again == done["resets_at_once"] + done["garbage"] + done["draining"]
    assert slowest_s < LIMITS.first_byte_s + LIMITS.idle_s + 1
