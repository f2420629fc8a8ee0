"""Clients that leave while their prompts wait, fill or run leave nothing behind."""

import contextlib
import http.client
import json
import random
import socket
import threading
from collections.abc import Iterator
from typing import Any

from ...support.waiting import eventually
from .prompts import documents, joined

HEAD, *DOCUMENTS = documents(90, 20, *[120] * 10)
LOAD = (
    *("hypic_engine_running", "hypic_engine_queued"),
    *("sglang:num_running_reqs", "sglang:num_queue_reqs"),
)
LEAVE_AFTER_S = (0.02, 0.05, 0.2, 0.6, 1.5)
PROBE = joined(HEAD, *DOCUMENTS[:5], "Which is first?")


def streamed_and_dropped(server, prompt: str, after_s: float) -> None:
    """One streamed request over a socket of its own, reset after a while."""
    with leaving(server, after_s) as connection, contextlib.suppress(OSError):  # the time is over
        ask(connection, prompt, n_tokens=200).read()


@contextlib.contextmanager
def leaving(server, timeout_s: float) -> Iterator[http.client.HTTPConnection]:
    """A connection that is reset at the end."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout_s)
    try:
        yield connection
    finally:
        if connection.sock is not None:
            reset = b"\x01\x00\x00\x00\x00\x00\x00\x00"
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        connection.close()


def ask(
    connection: http.client.HTTPConnection, prompt: str, *, n_tokens: int, **sampling: Any
) -> http.client.HTTPResponse:
    sampling |= {"temperature": 0, "max_new_tokens": n_tokens, "ignore_eos": True}
    body = {"text": prompt, "stream": True, "sampling_params": sampling}
    headers = {"content-type": "application/json"}
    connection.request("POST", "/generate", json.dumps(body), headers)
    return connection.getresponse()


def storm(server, dice: random.Random, n_requests: int) -> None:
    threads = [
        threading.Thread(
            target=streamed_and_dropped,
            args=(
                server,
                joined(HEAD, *dice.sample(DOCUMENTS, 6), f"({n})"),
                dice.choice(LEAVE_AFTER_S),
            ),
        )
        for n in range(n_requests)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def gauge(server, name: str) -> float:
    lines = server.get("/metrics").splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


def at_rest(server) -> bool:
    info = server.info
    used = info["operator_slots"]["total"] - info["operator_slots"]["free"]
    load = sum(gauge(server, name) for name in LOAD)
    return load == 0 and info["pinned_segments"] == 0 and used == info["segments"]


def test_four_rounds_of_dropped_streams_leave_nothing_pinned(engine):
    engine.flush()
    before = engine.generate(PROBE)["output_ids"]
    dice = random.Random(91)
    for _ in range(4):
        storm(engine, dice, 24)
        eventually(lambda: at_rest(engine), within_s=60)
    assert engine.generate(PROBE)["output_ids"] == before
    engine.flush()  # refused while anything is pinned or runs
    slots = engine.info["operator_slots"]
    assert slots["free"] == slots["total"]


def test_a_client_that_leaves_its_three_samples_stops_all_three(engine):
    engine.flush()
    with leaving(engine, 60) as connection:
        answer = ask(connection, PROBE, n_tokens=4_000, n=3)
        assert answer.readline().startswith(b"data: ")
        eventually(lambda: engine.info["running"], until=lambda n: n == 3, within_s=30)
    eventually(lambda: at_rest(engine), within_s=10)


def test_sglang_s_gauges_show_an_idle_engine_long_before_their_30_s(engine):
    engine.generate(PROBE, n_tokens=60)
    eventually(lambda: all(gauge(engine, name) == 0 for name in LOAD), within_s=10)


def test_aborting_everything_and_flushing_at_once_leaves_a_working_engine(small):
    small.flush()
    before = small.generate(joined(HEAD, *DOCUMENTS[:2], "?"))["output_ids"]
    prompts = [joined(HEAD, *documents(n, 150, 150), "?") for n in range(8)]
    body = {"sampling_params": {"max_new_tokens": 100, "ignore_eos": True}}
    threads = [
        threading.Thread(target=small.post, args=("/generate", body | {"text": prompt}, 60))
        for prompt in prompts
    ]
    for thread in threads:
        thread.start()
    eventually(lambda: small.info["segments"] > 2, within_s=30)
    small.post("/abort_request", {"abort_all": True})
    small.flush()
    for thread in threads:
        thread.join()
    slots = eventually(
        lambda: small.info["operator_slots"], until=lambda slots: slots["free"] == slots["total"]
    )
    assert slots["total"] > 0
    assert small.generate(joined(HEAD, *DOCUMENTS[:2], "?"))["output_ids"] == before


def test_a_request_may_call_itself_what_it_likes(engine):
    answer = engine.generate("a prompt of its own", rid="hypic-fill-0")
    assert answer["meta_info"]["id"] == "hypic-fill-0"
