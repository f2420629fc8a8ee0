"""Asks for one token through the front door, as a client would, and remembers the answers.

Does not decide when, nor what the answers mean; `core.serving` does.
"""

import json
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Protocol

import aiohttp

from ..core import names, serving
from ..core.api import HypicCluster
from ..core.serving import Answer, Record
from ..metrics import Metrics
from ..wakeups import Key
from .background import Background

_SHOWN_CHARACTERS = 200


class Prober(Protocol):
    """Whoever can tell whether a cluster serves."""

    async def ask(self, cluster: HypicCluster) -> Answer:
        """What a request for one token ended with; never raises for what the cluster does."""


class HttpProber:
    """Sends ``POST /v1/completions`` to the router's Service.

    Args:
        session: what it sends with.
        secret: of which its keys are made; empty for none.
        timeout_s: how long it waits; a busy engine may take its time.
    """

    def __init__(
        self, session: aiohttp.ClientSession, *, secret: str = "", timeout_s: float = 30.0
    ) -> None:
        self._session = session
        self._secret = secret
        self._timeout_s = timeout_s

    async def ask(self, cluster: HypicCluster) -> Answer:
        """What the request ended with."""
        url = f"{names.url(cluster)}/v1/completions"
        asks_for_keys = cluster.spec.router.api_keys_secret_ref is not None
        own = serving.front_key(self._secret, cluster.metadata.uid)
        key = own if asks_for_keys and self._secret else ""
        return await self.ask_at(url, cluster.spec.model.name, key=key)

    async def ask_at(self, url: str, model: str, *, key: str = "") -> Answer:
        """The same for any address."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        body = {"model": model, "prompt": "Hello", "max_tokens": 1, "temperature": 0}
        timeout = aiohttp.ClientTimeout(total=self._timeout_s)
        try:
            async with self._session.post(
                url, json=body, headers=headers, timeout=timeout
            ) as response:
                return _answer(response.status, await response.text())
        except TimeoutError:
            words = (
                f"a request for one token got no answer in {self._timeout_s:g} s; "
                f"the logs of the engines say why"
            )
            return Answer(token=False, reason="NoAnswer", message=words)
        except aiohttp.ClientError as error:
            words = f"the router cannot be reached: {error}"
            return Answer(token=False, reason="NotReachable", message=words)


class Answers:
    """What was answered for each cluster so far; one request at a time for each.

    Args:
        prober: who asks.
        wake: called with the cluster's key when an answer has come.
        period_s: how often is asked at rest.
    """

    def __init__(
        self, prober: Prober, wake: Callable[[Key], None], metrics: Metrics, *, period_s: float
    ) -> None:
        self._prober = prober
        self._metrics = metrics
        self._period_s = period_s
        self._records: dict[Key, Record] = {}
        self._background = Background(wake)

    def record(self, key: Key) -> Record:
        """The answers so far."""
        return self._records.get(key, Record())

    def ask_when_due(self, key: Key, cluster: HypicCluster, ready: frozenset[str]) -> float:
        """Send a request if one is due, without waiting for its answer.

        Returns:
            Seconds until the next one is due.
        """
        due_s = serving.due_in_s(
            self.record(key), ready=ready, now_s=time.monotonic(), period_s=self._period_s
        )
        if due_s > 0:
            return due_s
        self._background.begin(key, lambda: self._ask(key, cluster, ready))
        return self._period_s

    def asking(self, key: Key) -> int:
        """How many requests of ours are under way."""
        return int(self._background.busy(key))

    def forget(self, key: Key) -> None:
        """Drop the answers of a cluster that is gone; one of its name starts anew."""
        self._records.pop(key, None)
        self._background.forget(key)

    async def close(self) -> None:
        """Stop waiting for answers."""
        await self._background.close()

    async def _ask(self, key: Key, cluster: HypicCluster, ready: frozenset[str]) -> bool:
        try:
            answer = await self._prober.ask(cluster)
        except Exception as error:  # noqa: BLE001  whatever it was, it brought no token
            words = f"a request for one token failed: {error!r}"
            answer = Answer(token=False, reason="RequestFailed", message=words)
        record = self.record(key).with_answer(answer, now_s=time.monotonic(), ready=ready)
        self._records[key] = record
        self._metrics.probe_total.labels(answer.reason).inc()
        return True


def _answer(status: int, text: str) -> Answer:
    if status != HTTPStatus.OK:
        said = " ".join(text.split())[:_SHOWN_CHARACTERS]
        words = f"a request for one token got status {status}: {said}"
        return Answer(token=False, reason="RequestFailed", message=words)
    if _tokens(text) < 1:
        words = "a request for one token was answered without one"
        return Answer(token=False, reason="NoToken", message=words)
    return Answer(token=True, reason="TokenReceived", message="a request for one token got one")


def _tokens(text: str) -> int:
    try:
        answer: Any = json.loads(text)
        return int(answer["usage"]["completion_tokens"])
    except (KeyError, TypeError, ValueError):
        return 0
