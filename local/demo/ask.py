"""Sends one prompt to a router or an engine and reads the answer as it comes.

Streams `/generate`, so that the time to the first token is measured where a user would notice it.
Decides nothing about what the answers mean.
"""

import http.client
import json
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import FailedError

N_ANSWER_TOKENS = 16
ASK_TIMEOUT_S = 300.0
# A router that restarts, or an engine that leaves, is over within this time.
PATIENCE_S = 60.0
PAUSE_S = 0.5
PASSING = frozenset({429, 502, 503, 504})
DATA = b"data: "


class NotNowError(FailedError):
    """Nothing was answered, and the same request may be answered soon."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one prompt.

    Attributes:
        ids: the answer's tokens.
        text: the same, as text.
        n_prompt_tokens: tokens of the prompt by the engine's count.
        n_cached_tokens: how many of them the engine took from its cache.
        first_token_s: from sending the request to the first token.
        engine: pod that answered, where a router says so.
        choice: why the router chose it.
    """

    ids: tuple[int, ...]
    text: str
    n_prompt_tokens: int
    n_cached_tokens: int
    first_token_s: float
    engine: str
    choice: str


def _body(prompt: str) -> bytes:
    sampling = {"temperature": 0, "max_new_tokens": N_ANSWER_TOKENS, "ignore_eos": True}
    return json.dumps({"text": prompt, "sampling_params": sampling, "stream": True}).encode()


def _events(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    for line in response:
        if line.startswith(DATA) and line.strip() != DATA + b"[DONE]":
            yield json.loads(line.removeprefix(DATA))


def _read(response: http.client.HTTPResponse, sent_at: float) -> Answer:
    first_token_s, last = 0.0, None
    for event in _events(response):
        if "error" in event:
            raise FailedError(f"the answer broke off: {event['error']}")
        first_token_s = first_token_s or time.monotonic() - sent_at
        last = event
    if last is None:
        raise NotNowError("the answer ended before its first token")
    meta = last["meta_info"]
    return Answer(
        ids=tuple(last["output_ids"]),
        text=last["text"],
        n_prompt_tokens=meta["prompt_tokens"],
        n_cached_tokens=meta["cached_tokens"],
        first_token_s=first_token_s,
        engine=response.headers.get("x-hypic-engine", ""),
        choice=response.headers.get("x-hypic-choice", ""),
    )


def _connection(url: str, timeout_s: float) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=timeout_s)


def ask_once(url: str, prompt: str) -> Answer:
    """The answer to a prompt.

    Raises:
        NotNowError: nobody answered, or not yet.
        FailedError: the answer is an error that will stay one.
    """
    headers = {"Content-Type": "application/json", "x-hypic-explain": "1"}
    connection = _connection(url, ASK_TIMEOUT_S)
    try:
        sent_at = time.monotonic()
        connection.request("POST", "/generate", _body(prompt), headers)
        response = connection.getresponse()
        if response.status == http.client.OK:
            return _read(response, sent_at)
        said = f"{url} answered {response.status}: {response.read(500).decode('utf-8', 'replace')}"
    except (OSError, http.client.HTTPException) as error:
        raise NotNowError(f"{url} did not answer: {error!r}") from error
    finally:
        connection.close()
    raise NotNowError(said) if response.status in PASSING else FailedError(said)


def ask(url: str, prompt: str) -> Answer:
    """The answer to a prompt, asked again for a while as long as the server is not ready for it."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return ask_once(url, prompt)
        except NotNowError:
            if time.monotonic() > deadline:
                raise
            time.sleep(PAUSE_S)


def empty_cache(engine_url: str) -> None:
    """Empty an engine's cache, segments and prefixes, once it has nothing to do."""
    connection = _connection(engine_url, ASK_TIMEOUT_S)
    try:
        connection.request("POST", f"/flush_cache?timeout={PATIENCE_S:.0f}", b"")
        response = connection.getresponse()
        said = response.read(500).decode("utf-8", "replace").strip()
    except (OSError, http.client.HTTPException) as error:
        raise FailedError(f"{engine_url} could not empty its cache: {error!r}") from error
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise FailedError(f"{engine_url} could not empty its cache: {response.status} {said}")


def get_json(url: str, path: str) -> Any:
    """A JSON document from a server of the cluster."""
    connection = _connection(url, PATIENCE_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        if response.status != http.client.OK:
            raise FailedError(f"{url}{path} answered {response.status}")
        return json.loads(response.read())
    except (OSError, http.client.HTTPException) as error:
        raise FailedError(f"{url}{path} did not answer: {error!r}") from error
    finally:
        connection.close()
