"""An engine that is about to go refuses what is new and ends what it has."""

import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from ...support.engine_server import Engine
from ...support.waiting import eventually
from .prompts import documents, joined

EMPTY = {
    "draining": False,
    "running": 0,
    "queued": 0,
    "transfers": 0,
    "oldest_s": 0.0,
    "left_s": None,
}
CHAT = {"model": "any", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}
SHORT = {"text": "Hello there", "sampling_params": {"temperature": 0, "max_new_tokens": 2}}


def asked(server, path, *, method=None, body=None, key=None):
    """Status, headers and body of one answer, whatever it is."""
    headers = {"content-type": "application/json"}
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    raw = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, raw, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def drain(server, method=None, body=None, key=None):
    status, _, raw = asked(server, "/pic/drain", method=method, body=body, key=key)
    return status, json.loads(raw)


@contextmanager
def draining(server):
    """A drain that is cancelled at the end, so that other tests are served."""
    assert drain(server, body={"deadline_s": 60})[0] == 200
    try:
        yield
    finally:
        assert drain(server, "DELETE")[1]["draining"] is False


@contextmanager
def long_answer(server, n_tokens):
    """A stream that is under way, and the events that it brings."""
    events = []
    sampling = {"temperature": 0, "max_new_tokens": n_tokens, "ignore_eos": True}
    body = {"text": joined(*documents(130, 40, 40, 9)), "sampling_params": sampling}
    thread = threading.Thread(target=lambda: events.extend(server.pieces("/generate", body)))
    thread.start()
    eventually(lambda: drain(server)[1]["running"] == 1)
    yield events
    thread.join()
    eventually(lambda: drain(server)[1]["running"] == 0)


def test_an_engine_that_does_not_drain_says_so(engine):
    assert drain(engine) == (200, EMPTY)


@pytest.mark.parametrize("path", ["/generate", "/v1/completions", "/v1/chat/completions"])
def test_new_requests_are_sent_elsewhere_during_a_drain(engine, path):
    body = {"/generate": SHORT, "/v1/completions": {"model": "any", "prompt": "Hi"}}.get(path, CHAT)
    with draining(engine):
        status, headers, raw = asked(engine, path, body=body)
        assert (status, headers["x-hypic-draining"]) == (503, "1")
        assert int(headers["retry-after"]) > 0
        assert json.loads(raw)["error"]["type"] == "engine_draining"
    assert asked(engine, path, body=body)[0] == 200


def test_what_runs_goes_on_to_its_end_and_is_counted_until_then(engine):
    with long_answer(engine, 120) as events, draining(engine):
        state = eventually(lambda: drain(engine)[1], until=lambda said: said["running"] == 1)
        assert (state["draining"], state["queued"]) == (True, 0)
        assert asked(engine, "/generate", body=SHORT)[0] == 503
        eventually(lambda: drain(engine)[1]["oldest_s"] > 0.2)
        eventually(lambda: drain(engine)[1]["running"] == 0, within_s=60)
    assert events[-1]["meta_info"]["finish_reason"]["type"] == "length"
    assert len(events[-1]["output_ids"]) == 120


def test_an_order_during_a_drain_brings_its_end_nearer_and_never_puts_it_off(engine):
    with draining(engine):
        assert 50 < drain(engine, body={"deadline_s": 3600})[1]["left_s"] <= 60
        assert 20 < drain(engine, body={"deadline_s": 30})[1]["left_s"] <= 30


def test_the_command_of_prestop_ends_with_the_drain_that_began_before_it(engine):
    command = [sys.executable, "-m", "hypic_engine.drain", "--url", engine.url]
    with long_answer(engine, 200) as events, draining(engine):
        assert drain(engine, body={"deadline_s": 0.1})[0] == 200
        ended = subprocess.run([*command, "--deadline-s", "3600"], timeout=60, check=False)
        assert ended.returncode == 1
        assert drain(engine)[1]["running"] == 1
    assert len(events[-1]["output_ids"]) == 200


def test_a_draining_engine_is_not_ready_but_alive(engine):
    with draining(engine):
        status, _, raw = asked(engine, "/pic/ready")
        assert status == 503
        assert "draining: 0 requests inside" in json.loads(raw)["reason"]
        assert asked(engine, "/health")[0] == 200
        assert asked(engine, "/pic/info")[0] == 200
    assert asked(engine, "/pic/ready")[0] == 200


@pytest.mark.parametrize(
    "body", [{}, {"deadline_s": "60"}, {"deadline_s": 0}, {"deadline_s": True}, [60]]
)
def test_a_deadline_that_cannot_be_is_refused_and_no_drain_begins(engine, body):
    status, answer = drain(engine, "POST", body)
    assert status == 400
    assert "deadline_s" in answer["error"]
    assert "86400" in answer["error"]
    assert drain(engine)[1]["draining"] is False


def test_an_order_without_a_body_is_refused(engine):
    status, answer = drain(engine, "POST")
    assert (status, answer["error"]) == (400, "body: must be JSON")
    assert drain(engine)[1]["draining"] is False


def test_the_command_of_prestop_blocks_until_the_last_answer_is_whole(engine):
    command = [sys.executable, "-m", "hypic_engine.drain", "--url", engine.url]
    with long_answer(engine, 100) as events:
        ended = subprocess.run([*command, "--deadline-s", "60"], timeout=90, check=False)
        assert (ended.returncode, len(events[-1]["output_ids"])) == (0, 100)
    assert drain(engine, "DELETE") == (200, EMPTY)


@pytest.fixture(scope="module")
def keyed(tiny, tmp_path_factory):
    """A server without segment caching, with both of SGLang's keys."""
    log = tmp_path_factory.mktemp("keyed") / "log"
    keys = ("--api-key", "user", "--admin-api-key", "admin", "--disable-radix-cache")
    with Engine(tiny, log, flags=keys) as started:
        yield started


def test_control_takes_the_admin_key_and_no_other_as_sglang_s_own_routes_do(keyed):
    for path in ("/pic/drain", "/pic/info", "/flush_cache"):
        codes = [asked(keyed, path, key=key)[0] for key in (None, "user", "admin")]
        assert codes == [401, 401, 200], path


def test_every_control_route_of_ours_asks_for_the_admin_key(keyed):
    paths = json.loads(asked(keyed, "/openapi.json", key="user")[2])["paths"]
    ours = [
        (path, method.upper())
        for path, methods in paths.items()
        if path.startswith("/pic/") and path != "/pic/ready"
        for method in methods
    ]
    assert len(ours) == 10
    for path, method in ours:
        for key in (None, "user"):
            assert asked(keyed, path, method=method, body={}, key=key)[0] == 401, (path, method)
    assert drain(keyed, key="admin")[1]["draining"] is False


def test_probes_need_no_key(keyed):
    for path in ("/health", "/pic/ready"):
        assert asked(keyed, path)[0] == 200
    assert asked(keyed, "/v1/models")[0] == 401


def test_an_engine_without_segments_drains_too_and_asks_for_keys_first(keyed):
    assert drain(keyed, body={"deadline_s": 9}, key="admin")[0] == 200
    assert asked(keyed, "/generate", body=SHORT)[0] == 401
    status, headers, _ = asked(keyed, "/generate", body=SHORT, key="user")
    assert (status, headers["x-hypic-draining"]) == (503, "1")
    assert asked(keyed, "/pic/ready")[0] == 503
    assert drain(keyed, "DELETE", key="admin") == (200, EMPTY)
    assert asked(keyed, "/generate", body=SHORT, key="user")[0] == 200
