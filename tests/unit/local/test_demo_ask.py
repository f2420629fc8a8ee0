import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from local.demo.ask import NotNowError, ask, ask_once, empty_cache, get_json
from local.errors import FailedError

EVENTS = [
    {"text": "a", "output_ids": [97], "meta_info": {"prompt_tokens": 9, "cached_tokens": 4}},
    {"text": "ab", "output_ids": [97, 98], "meta_info": {"prompt_tokens": 9, "cached_tokens": 4}},
]
STREAM = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in EVENTS)
WHOLE = STREAM + b"data: [DONE]\n\n"


@contextmanager
def server(*answers):
    """Gives these (status, content) in order, the last for ever; yields its URL and requests."""
    left, seen = list(answers), []

    class Server(BaseHTTPRequestHandler):
        def _answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            seen.append((self.path, body, self.headers.get("x-hypic-explain")))
            status, content = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("x-hypic-engine", "demo-both-0")
            self.send_header("x-hypic-choice", "it holds most")
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _answer  # noqa: N815  # the names http.server looks for

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}", seen
        finally:
            listening.shutdown()
            thread.join()


def test_an_answer_holds_the_tokens_of_the_last_event_and_who_gave_it():
    with server((200, WHOLE)) as (url, seen):
        answer = ask_once(url, "prompt")
    assert (answer.ids, answer.text) == ((97, 98), "ab")
    assert (answer.n_prompt_tokens, answer.n_cached_tokens) == (9, 4)
    assert (answer.engine, answer.choice) == ("demo-both-0", "it holds most")
    assert answer.first_token_s > 0
    ((path, body, explain),) = seen
    assert (path, explain) == ("/generate", "1")
    assert json.loads(body)["sampling_params"]["temperature"] == 0
    assert json.loads(body)["stream"] is True


def test_a_server_that_is_not_ready_is_asked_again():
    with server((503, b"no engine is ready"), (200, WHOLE)) as (url, seen):
        assert ask(url, "prompt").text == "ab"
    assert len(seen) == 2


def test_an_error_that_stays_is_shown_at_once():
    with (
        server((400, b"too many segments")) as (url, seen),
        pytest.raises(FailedError, match="400: too many segments"),
    ):
        ask(url, "prompt")
    assert len(seen) == 1


def test_a_stream_that_ends_in_an_error_event_is_no_answer():
    broken = STREAM + b'data: {"error": {"message": "engine gone"}}\n\n'
    with server((200, broken)) as (url, _), pytest.raises(FailedError, match="engine gone"):
        ask_once(url, "prompt")


def test_a_stream_without_a_token_may_be_asked_again():
    with server((200, b"data: [DONE]\n\n")) as (url, _), pytest.raises(NotNowError):
        ask_once(url, "prompt")


def test_nobody_there_may_be_asked_again():
    with pytest.raises(NotNowError, match="did not answer"):
        ask_once("http://127.0.0.1:1", "prompt")


def test_emptying_a_cache_waits_for_the_engine_and_shows_why_it_did_not():
    with server((200, b"Cache flushed.")) as (url, seen):
        empty_cache(url)
    assert seen[0][0] == "/flush_cache?timeout=60"
    with (
        server((400, b"Flush cache failed")) as (url, _),
        pytest.raises(FailedError, match="could not empty its cache: 400 Flush cache failed"),
    ):
        empty_cache(url)


def test_a_document_that_is_not_there_is_an_error_with_its_address():
    with server((200, b'{"engines": []}')) as (url, _):
        assert get_json(url, "/fleet") == {"engines": []}
    with server((404, b"")) as (url, _), pytest.raises(FailedError, match="/fleet answered 404"):
        get_json(url, "/fleet")
