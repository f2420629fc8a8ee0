"""Clients that read streams all the time, and how each stream ended."""

import http.client
import json
import random
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

MODEL = "tiny-qwen3.5"
SILENCE_S = 120.0
HEADERS = {"Content-Type": "application/json", "Connection": "close"}
PAUSE_S = 0.5


@dataclass(frozen=True, slots=True)
class Ending:
    """How one request ended.

    Attributes:
        started: whether a token came.
        fault: what was wrong with a stream that had started; empty for nothing.
        refusal: why none started; empty when one did.
    """

    started: bool
    fault: str = ""
    refusal: str = ""


def read(front: str, prompt: str, n_tokens: int) -> Ending:
    """Ask for a stream and read it to its end."""
    connection = http.client.HTTPConnection(urlsplit(front).netloc, timeout=SILENCE_S)
    body = {"model": MODEL, "prompt": prompt, "max_tokens": n_tokens, "stream": True}
    body |= {"ignore_eos": True, "temperature": 0, "stream_options": {"include_usage": True}}
    got, counted, done = 0, 0, False
    try:
        connection.request("POST", "/v1/completions", json.dumps(body), HEADERS)
        answer = connection.getresponse()
        if answer.status != http.HTTPStatus.OK:
            return Ending(started=False, refusal=f"status {answer.status}: {answer.read(200)!r}")
        for line in answer:
            data = line.removeprefix(b"data: ").strip()
            if data == b"[DONE]":
                done = True
            elif data.startswith(b"{"):
                event: dict[str, Any] = json.loads(data)
                if "error" in event:
                    return Ending(started=got > 0, fault=f"after {got} events: {event['error']}")
                got += bool(event["choices"])
                counted = max(counted, (event.get("usage") or {}).get("completion_tokens", 0))
    except (OSError, http.client.HTTPException) as error:
        if not got:
            return Ending(started=False, refusal=repr(error))
        return Ending(started=True, fault=f"after {got} events: {error!r}")
    finally:
        connection.close()
    # A busy engine puts several tokens into one event, so they are counted by the engine.
    whole = done and got > 0 and counted == n_tokens
    words = f"ended with {counted} of {n_tokens} tokens" + ("" if done else " and no [DONE]")
    return Ending(started=got > 0, fault="" if whole else words)


@dataclass
class Clients:
    """Several clients, each with one stream at a time, until the block ends.

    Attributes:
        endings: how each of their requests ended, in order.
    """

    front: str
    seed: int
    count: int = 3
    endings: list[Ending] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._ask_on, args=(number,)) for number in range(self.count)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(2 * SILENCE_S)

    @property
    def started(self) -> int:
        """Streams of which a token came."""
        return sum(ending.started for ending in self.endings)

    @property
    def broken(self) -> list[str]:
        """What was wrong with streams that had started."""
        return [ending.fault for ending in self.endings if ending.fault]

    @property
    def refusals(self) -> Counter[str]:
        """Why requests were not begun, and how often."""
        return Counter(ending.refusal for ending in self.endings if ending.refusal)

    def _ask_on(self, number: int) -> None:
        chance = random.Random(f"{self.seed}/{number}")
        while not self._stop.is_set():
            prompt = f"Case {chance.random()}: what does the harbour master say?"
            ending = read(self.front, prompt, chance.randrange(20, 400))
            self.endings.append(ending)
            if ending.refusal:  # as a client that heeds Retry-After
                self._stop.wait(PAUSE_S)
