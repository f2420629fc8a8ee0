"""Story: a client goes away in the middle of an answer, and the engine stops working for it."""

import http.client
import json
from urllib.parse import urlsplit

import pytest

from local.demo import compare

from .world import until

N_LONG_TOKENS = 4_000
BUSY, IDLE = 400, 200


def emptied(engine_url):
    """200 when the engine had nothing to do and emptied its cache, 400 while it works."""
    connection = http.client.HTTPConnection(urlsplit(engine_url).netloc, timeout=60)
    try:
        connection.request("POST", "/flush_cache", b"")
        return connection.getresponse().status
    finally:
        connection.close()


def request(front, *, stream):
    """Sends a request for a long answer and returns the open connection."""
    sampling = {"temperature": 0, "max_new_tokens": N_LONG_TOKENS, "ignore_eos": True}
    body = {"text": "Tell me everything.", "sampling_params": sampling, "stream": stream}
    connection = http.client.HTTPConnection(urlsplit(front).netloc, timeout=120)
    connection.request("POST", "/generate", json.dumps(body), {"Content-Type": "application/json"})
    return connection


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_an_engine_is_idle_soon_after_its_client_left(stream, front, demo_kubectl):
    urls = compare.engines(demo_kubectl).values()
    until(lambda: all(emptied(url) == IDLE for url in urls), within_s=60, what="all idle before")
    connection = request(front, stream=stream)
    try:
        if stream:
            assert connection.getresponse().readline().startswith(b"data: ")
        until(
            lambda: any(emptied(url) == BUSY for url in urls), within_s=30, what="an engine works"
        )
    finally:
        connection.close()
    until(lambda: all(emptied(url) == IDLE for url in urls), within_s=10, what="all idle again")
