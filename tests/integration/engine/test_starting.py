"""What an engine says at its address from the first moment on."""

import json
import threading
import urllib.error
import urllib.request

from ...support.engine_server import STOP_TIMEOUT_S, Engine


def said(url):
    """Status and body of one answer; None while nobody is there."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)
    except OSError:
        return None


def leaves_while_it_is_followed(server):
    """Nobody has asked for a token yet, and somebody follows what it stores."""
    with urllib.request.urlopen(f"{server.url}/pic/events", timeout=30) as events:
        events.readline()
        server.process.terminate()
        assert server.process.wait(STOP_TIMEOUT_S) is not None
    assert "Remaining number of requests 0" in server.log.read_text()


def test_it_says_how_far_it_is_until_it_serves_and_leaves_when_it_is_told_to(tiny, tmp_path):
    server = Engine(tiny, tmp_path / "engine.log")
    heard, started = [], threading.Event()

    def listen():
        while not started.is_set():
            heard.append(said(f"{server.url}/pic/ready"))
            started.wait(0.02)

    listening = threading.Thread(target=listen)
    listening.start()
    try:
        with server:
            started.set()
            listening.join()
            leaves_while_it_is_followed(server)
    finally:
        started.set()
        listening.join()
    first = next(index for index, item in enumerate(heard) if item is not None)
    gaps = [item for item in heard[first:] if item is None]
    answers = [item for item in heard if item is not None]
    assert answers[0] == (503, {"ready": False, "reason": "the engine is starting"})
    told = [body["loading"]["percent"] for _, body in answers if "loading" in body]
    assert told == sorted(told)
    assert told[-1] == 100
    # Between the two servers there is a moment, and no more, in which nobody listens.
    assert len(gaps) < 0.1 * len(answers)
    assert {status for status, body in answers if not body["ready"]} == {503}
