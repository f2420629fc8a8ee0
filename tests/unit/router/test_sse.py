import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hypic_router.core import sse
from hypic_router.core.sse import LONGEST_HELD_BYTES, Tail, error_body, error_event, passed

STREAM = b"".join(
    (
        b'data: {"a": 1}\n\n: note\n\n',
        b"id: 3\r\ndata: x\r\n\r\n",
        b"event: y\ndata: z\ndata: q\n\n",
        b"data: [DONE]\n\n",
    )
)


@given(st.lists(st.integers(1, len(STREAM)), max_size=12))
def test_cut_anywhere_a_stream_arrives_the_same_and_only_in_whole_events(cuts):
    edges = [0, *sorted(cuts), len(STREAM)]
    tail, got = Tail(), b""
    for start, end in itertools.pairwise(edges):
        ready, tail = passed(tail, STREAM[start:end])
        got += ready
        assert got + tail.held == STREAM[:end]
        assert not got or got.endswith((b"\n\n", b"\r\n\r\n"))
    assert got == STREAM
    assert tail.ended


@pytest.mark.parametrize(
    ("stream", "ended"),
    [
        (b"data: [DONE]\n\n", True),
        (b"data: a\r\n\r\ndata: [DONE]\r\n\r\n", True),
        (b'data: {"error": {"message": "x"}}\n\n', True),
        (b'data: {"text": "[DONE]"}\n\n', False),
        (b"data: [DONE]\n\ndata: more\n\n", False),
        (b"data: a\n\ndata: [DO", False),
        (b"", False),
    ],
)
def test_a_stream_has_ended_when_its_last_event_says_so(stream, ended):
    _, tail = passed(Tail(), stream)
    assert tail.ended is ended


def test_an_endless_event_is_passed_on_in_pieces():
    ready, tail = passed(Tail(b"x" * LONGEST_HELD_BYTES), b"y")
    assert len(ready) == LONGEST_HELD_BYTES + 1
    assert tail.held == b""


def test_an_error_has_openais_shape_and_one_line():
    body = error_body('a "quoted"\nline \ud83d', kind="k", param=None, code="c")
    assert b"\n" not in body
    assert json.loads(body)["error"]["type"] == "k"
    assert error_event(body) == b"data: " + body + b"\n\n"


@pytest.mark.parametrize(
    ("events", "failed"),
    [
        (b'data: {"choices": []}\n\n', False),
        (b'data: {"error": {"message": "too long", "code": 400}}\n\n', False),
        (b'data: {"error": {"message": "gone", "code": 500}}\n\ndata: [DONE]\n\n', True),
        (b'data: {"error": {"message": "gone", "code": "500"}}\n\n', True),
        (b'data: {"error": "gone"}\n\n', True),
        (b'data: {"error": {"code": null}}\n\n', True),
        (b'data: {"error"', True),
    ],
)
def test_a_stream_that_begins_with_an_error_of_the_engine_has_failed(events, failed):
    assert sse.failed(events) is failed
