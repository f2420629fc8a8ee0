import json

import pytest

from hypic_router.core.headers import for_client, for_engine, readable

HOPS = [("Connection", "close, X-Mine"), ("X-Mine", "1"), ("TE", "trailers"), ("Upgrade", "h2c")]


def test_headers_of_the_clients_connection_stay_there():
    pairs = [*HOPS, ("Host", "h"), ("Expect", "100-continue"), ("X-Kept", "1"), ("x-kept", "2")]
    sent = for_engine(pairs, request_id="r", stream=False)
    assert sent == [("X-Kept", "1"), ("x-kept", "2"), ("x-request-id", "r")]


def test_a_stream_is_asked_for_uncompressed_and_nothing_else_is_changed():
    pairs = [("Accept-Encoding", "gzip"), ("Authorization", "Bearer k")]
    assert for_engine(pairs, request_id="r", stream=True) == [
        ("Authorization", "Bearer k"),
        ("accept-encoding", "identity"),
        ("x-request-id", "r"),
    ]
    assert for_engine(pairs, request_id="r", stream=False)[0] == ("Accept-Encoding", "gzip")


def test_headers_of_the_engines_connection_stay_there():
    pairs = [*HOPS, ("Content-Length", "3"), ("Server", "uvicorn"), ("Set-Cookie", "a")]
    assert for_client(pairs) == [("Set-Cookie", "a")]


@pytest.mark.parametrize(
    ("status", "kind"), [(404, "invalid_request_error"), (500, "server_error")]
)
def test_an_error_that_is_not_json_becomes_json(status, kind):
    data, pairs = readable(status, [("content-type", "text/html"), ("X", "1")], b"<h1>no</h1>")
    assert json.loads(data)["error"]["message"] == "<h1>no</h1>"
    assert json.loads(data)["error"]["type"] == kind
    assert pairs == [("X", "1"), ("Content-Type", "application/json")]


def test_an_empty_error_says_its_status():
    assert b"the engine answered 502" in readable(502, [], b"")[0]


@pytest.mark.parametrize(
    ("status", "pairs"),
    [
        (200, [("Content-Type", "text/html")]),
        (400, [("Content-Type", "application/json")]),
        (500, [("Content-Type", "text/plain"), ("Content-Encoding", "gzip")]),
    ],
)
def test_everything_else_stays_as_it_is(status, pairs):
    assert readable(status, pairs, b"x") == (b"x", pairs)
