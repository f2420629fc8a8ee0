"""Inputs that nobody sends by accident: each gets an error or a right answer, the next is served.

All share one engine, which must neither die nor lose memory: `conftest.running` looks at its end.
"""

import contextlib
import json
import socket
import struct
from concurrent.futures import ThreadPoolExecutor

import pytest

from ...support.waiting import eventually
from .prompts import SEPARATOR, documents, joined

SAMPLING = {"temperature": 0, "max_new_tokens": 2}
GENERATE, COMPLETIONS, CHAT = "/generate", "/v1/completions", "/v1/chat/completions"
IDS = [11] * 64
DOCUMENT, OTHER = documents(50, 120, 120)
PROMPT = joined(DOCUMENT, OTHER, "Which?")


def text(text, **fields):
    return GENERATE, {"text": text, "sampling_params": SAMPLING} | fields


def sampled(**sampling):
    return GENERATE, {"text": PROMPT, "sampling_params": SAMPLING | sampling}


def ids(ids, **pic):
    custom = {"custom_params": {"pic": pic}} if pic else {}
    return GENERATE, {"input_ids": ids, "sampling_params": SAMPLING | custom}


def chat(content, **fields):
    messages = [{"role": "user", "content": content}]
    return CHAT, {"model": "m", "messages": messages, "max_tokens": 2, "temperature": 0} | fields


def completion(prompt, **fields):
    return COMPLETIONS, {"model": "m", "prompt": prompt, "max_tokens": 2, "temperature": 0} | fields


def marked(text, mark):
    return {"type": "text", "text": text, "cache_control": mark}


SERVED, REFUSED, EITHER = {200}, {400, 422}, {200, 400, 422}
EPHEMERAL = {"type": "ephemeral"}

# name: (path and body, statuses, words of a refusal)
HOSTILE = {
    "ten thousand separators": (text(SEPARATOR * 10_000), REFUSED, "prompt"),
    "ten thousand separators and a word": (text(SEPARATOR * 10_000 + "Hello"), SERVED, ""),
    "ten thousand segments": (text(SEPARATOR.join("abcde" * 2_000)), REFUSED, "at most 512"),
    "a chat of separators": (chat(SEPARATOR * 1_000), SERVED, ""),
    "six hundred marked parts": (
        chat([marked(f"note {n}", EPHEMERAL) for n in range(600)]),
        REFUSED,
        "at most 512 segments",
    ),
    "a segment of a megabyte": (text(joined("a" * (1 << 20), "Q")), REFUSED, "context length"),
    "a plain megabyte": (completion("a" * (1 << 20)), REFUSED, "context length"),
    "a marked megabyte": (chat([marked("a" * (1 << 20), EPHEMERAL)]), REFUSED, "context length"),
    "bytes that are no UTF-8": ((GENERATE, b'{"text": "\xff\xfe"}'), REFUSED, ""),
    "no UTF-8 in a chat": ((CHAT, b'{"model": "m", "messages": "\xff"}'), REFUSED, ""),
    "half a JSON": ((GENERATE, b'{"text": '), REFUSED, ""),
    "JSON that is nested too deep": ((CHAT, b"[" * 100_000), REFUSED, ""),
    "no body": ((COMPLETIONS, b""), REFUSED, ""),
    "a lone surrogate": (text("a \ud800 b"), REFUSED, "lone surrogate at character 2"),
    "a lone surrogate in a segment": (text(joined("a \ud800 b", "Q")), REFUSED, "text"),
    "a lone surrogate in a marked part": (chat([marked("\ud800", EPHEMERAL)]), EITHER, ""),
    "NUL and escape characters": (text(joined("\0\x1b[31m" * 20, "\0")), SERVED, ""),
    "no text at all": ((GENERATE, {"sampling_params": SAMPLING}), REFUSED, "text"),
    "text and ids, of which ids count": (text("a", input_ids=IDS), SERVED, ""),
    "an empty text in a batch": (text(["a", ""]), REFUSED, ""),
    "negative ids": (ids([11, -1]), REFUSED, "input_ids: holds -1"),
    "ids past the vocabulary": (completion([11, 512]), REFUSED, "ids run from 0 to 511"),
    "ids past 64 bits": (ids([1 << 70]), REFUSED, "input_ids"),
    "more ids than the context": (ids([11] * 40_000), REFUSED, "context length"),
    "ends past the limit": (ids(IDS, segment_ends=[*range(600)]), REFUSED, "at most 512"),
    "ends twice the same": (ids(IDS, segment_ends=[5, 5]), REFUSED, "strictly increasing"),
    "ends with text": (
        sampled(custom_params={"pic": {"segment_ends": [3]}}),
        REFUSED,
        "segment_ends",
    ),
    "a negative index to recompute": (ids(IDS, recompute=[-1]), REFUSED, "recompute"),
    "a forged cut": (
        sampled(custom_params={"hypic": {"ends": [-5], "digests": 3}}),
        SERVED,
        "",
    ),
    "a mark that is no object": (
        chat([marked("a", "ephemeral")]),
        REFUSED,
        "messages[0].content[0].cache_control",
    ),
    "an invalid JSON schema": (sampled(json_schema='{"type": "nonsense'), EITHER, ""),
    "an invalid regular expression": (sampled(regex="(["), EITHER, ""),
    "an invalid grammar": (sampled(ebnf="root ::= ("), EITHER, ""),
    "a negative number of new tokens": (sampled(max_new_tokens=-5), REFUSED, "max_new_tokens"),
    "more new tokens than the context": (sampled(max_new_tokens=10**12), EITHER, "token"),
    "a temperature below zero": (sampled(temperature=-1), REFUSED, "temperature"),
    "a top_p of two": (sampled(top_p=2), REFUSED, "top_p"),
    "no sample": (sampled(n=0), REFUSED, "n: must be an integer from 1 to 128"),
    "a million samples": (sampled(n=10**6), REFUSED, "n: must be an integer from 1 to 128"),
    "a million samples of a chat": (chat(PROMPT, n=10**6), REFUSED, "from 1 to 128"),
    "a biased foreign id": (sampled(logit_bias={"99999": 1}), REFUSED, "logit_bias"),
    "a foreign id to stop at": (sampled(stop_token_ids=[1 << 40]), REFUSED, "stop_token_ids"),
    "logprobs of a foreign id": (
        text("a", return_logprob=True, token_ids_logprob=[-7]),
        REFUSED,
        "token_ids_logprob",
    ),
    "one id for two requests of a batch": (text(["a", "b"], rid=["x", "x"]), REFUSED, "rid"),
    "a session that was never opened": (text("a", session_params={"id": "nobody"}), REFUSED, ""),
    "an adapter that is not there": (text("a", lora_path="nobody"), REFUSED, "LoRA"),
    "a salt that is a list": (completion(PROMPT, cache_salt=["a"]), REFUSED, "cache_salt"),
    "a key that is a list": (chat(PROMPT, extra_key=["a"]), REFUSED, "extra_key"),
    "a salt of a megabyte": (chat(PROMPT, cache_salt="s" * (1 << 20)), SERVED, ""),
    "an image": (text("a", image_data="data:image/png;base64,AAAA"), EITHER, ""),
    "an image in a chat": (
        chat([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]),
        EITHER,
        "",
    ),
    "embeddings": ((GENERATE, {"input_embeds": [[0.1] * 128]}), REFUSED, "input_embeds"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_input_is_answered_and_the_next_request_is_served(engine, name):
    (path, body), statuses, words = HOSTILE[name]
    status, answer = engine.post(path, body, timeout_s=60)
    assert status in statuses, answer
    assert status == 200 or words in json.dumps(answer)
    assert engine.generate("Hello there", n_tokens=2)["output_ids"]


def test_a_request_id_in_use_is_refused_and_free_again_afterwards(engine):
    long = SAMPLING | {"max_new_tokens": 150, "ignore_eos": True}
    body = {"text": "a", "rid": "twice", "sampling_params": long}
    answers = at_once(engine, [(GENERATE, body)] * 2)
    assert sorted(status for status, _ in answers) == [200, 400]
    assert any("twice" in json.dumps(answer) for status, answer in answers if status == 400)
    assert engine.post(*text("a", rid="twice"))[0] == 200


def at_once(server, requests):
    """Statuses and answers of requests that are all sent before any is answered."""
    with ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(lambda request: server.post(*request), requests))


def hung_up(port: int, sent: bytes, *, after_bytes: int = 0) -> None:
    """A client that resets its connection once it has sent and read so much."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(sent)
        read = 0
        while read < after_bytes:
            read += len(client.recv(4_096)) or after_bytes
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def request(body: bytes, *, length: int | None = None) -> bytes:
    head = "POST /generate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {length or len(body)}\r\n\r\n".encode() + body


STREAM = json.dumps(
    {
        "text": joined(*documents(51, 150, 150, 150), "?"),
        "stream": True,
        "sampling_params": {"max_new_tokens": 200, "ignore_eos": True},
    }
).encode()


@pytest.mark.parametrize(
    ("sent", "after_bytes"),
    [
        (b"", 0),
        (b"POST /generate HT", 0),
        (request(STREAM, length=len(STREAM) + 9), 0),
        (request(STREAM), 0),
        (request(STREAM), 1),
        (request(STREAM), 4_000),
    ],
    ids=["at once", "in the head", "in the body", "while it fills", "with the head", "in a stream"],
)
def test_a_client_that_hangs_up_leaves_nothing_behind(engine, sent, after_bytes):
    with contextlib.suppress(ConnectionError):
        hung_up(engine.port, sent, after_bytes=after_bytes)
    eventually(lambda: engine.info["pinned_segments"] == 0, within_s=60)
    assert engine.generate("Hello there", n_tokens=2)["output_ids"]


def test_a_cache_smaller_than_one_segment_refuses_it_with_the_numbers(small):
    (huge,) = documents(52, 1_150)
    status, answer = small.post(*text(joined(huge, "Q")))
    assert status == 400
    assert "this server has 1200" in json.dumps(answer)
    assert small.generate("Hello there", n_tokens=2)["output_ids"]


def test_more_requests_than_all_queues_hold_are_each_answered(small):
    prompts = [joined(*documents(53 + n % 5, 90, 90), f"({n})") for n in range(60)]
    answers = at_once(small, [text(prompt) for prompt in prompts])
    assert [status for status, _ in answers] == [200] * len(prompts)
