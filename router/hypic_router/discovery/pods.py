"""The pods of a cluster, by a list and then a watch.

What a pod's fields mean is decided in `core.pods`. While the API server is away, the last set
stands.
"""

import asyncio
import json
import logging
import random
import ssl
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp

from ..core import pods
from ..core.workers import Address
from ..settings import KubeApi

WATCH_S = 240
# Bookmarks come every minute: silence for longer means that the watch is dead.
SILENCE_S = 90.0
REQUEST_S = 10.0
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0
PAGE = 500

log = logging.getLogger(__name__)


class _ExpiredError(Exception):
    """The watch's starting point is no longer known: list again."""


class Pods:
    """A cluster's pods in one namespace."""

    def __init__(self, api: KubeApi, *, namespace: str, cluster: str, port: int) -> None:
        self._api = api
        self._url = f"{api.url}/api/v1/namespaces/{namespace}/pods"
        self._selector = pods.selector(cluster)
        self._port = port
        self._pods: dict[str, dict[str, Any]] = {}
        self._version = ""

    async def addresses(self) -> AsyncIterator[tuple[Address, ...]]:
        """The whole set, at first and after each change."""
        pause_s = FIRST_PAUSE_S
        async with aiohttp.ClientSession(connector=self._connector()) as session:
            while True:
                try:
                    if not self._version:
                        await self._list(session)
                        yield self._found()
                    async for _ in self._watch(session):
                        yield self._found()
                    pause_s = FIRST_PAUSE_S
                    continue
                except _ExpiredError:
                    self._version = ""
                except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
                    log.warning(
                        "Lost the API server",
                        extra={"detail": f"{type(error).__name__}: {error}"},
                    )
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    def _connector(self) -> aiohttp.TCPConnector:
        if not self._api.url.startswith("https://"):
            return aiohttp.TCPConnector()
        return aiohttp.TCPConnector(
            ssl=ssl.create_default_context(cafile=self._api.ca_path or None)
        )

    async def _headers(self) -> dict[str, str]:
        """The service account's token, which is renewed in its file."""
        if not self._api.token_path:
            return {}
        token = await asyncio.to_thread(Path(self._api.token_path).read_text, "utf-8")
        return {"Authorization": f"Bearer {token.strip()}"}

    def _found(self) -> tuple[Address, ...]:
        found = (pods.address(pod, self._port) for pod in self._pods.values())
        return tuple(at for at in found if at is not None)

    async def _list(self, session: aiohttp.ClientSession) -> None:
        listed: dict[str, dict[str, Any]] = {}
        query = {"labelSelector": self._selector, "limit": str(PAGE)}
        while True:
            async with session.get(
                self._url,
                params=query,
                headers=await self._headers(),
                timeout=aiohttp.ClientTimeout(total=REQUEST_S),
            ) as response:
                _check(response)
                page = await response.json()
            for pod in page["items"]:
                listed[pod["metadata"]["name"]] = pod
            query["continue"] = page["metadata"].get("continue", "")
            if not query["continue"]:
                self._pods, self._version = listed, page["metadata"]["resourceVersion"]
                return

    async def _watch(self, session: aiohttp.ClientSession) -> AsyncIterator[None]:
        """Applies events; yields after each piece that changed a pod."""
        query = {
            "labelSelector": self._selector,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S),
            "resourceVersion": self._version,
        }
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=REQUEST_S, sock_read=SILENCE_S)
        async with session.get(
            self._url, params=query, headers=await self._headers(), timeout=timeout
        ) as response:
            _check(response)
            rest = b""
            while chunk := await response.content.readany():
                *lines, rest = (rest + chunk).split(b"\n")
                changed = [self._apply(json.loads(line)) for line in lines if line]
                if any(changed):
                    yield

    def _apply(self, event: dict[str, Any]) -> bool:
        """Whether the event changed a pod."""
        kind, thing = event["type"], event["object"]
        if kind == "ERROR":
            if thing.get("code") == HTTPStatus.GONE:
                raise _ExpiredError
            raise ValueError(f"the watch failed: {thing.get('message')}")
        self._version = thing["metadata"]["resourceVersion"]
        if kind == "BOOKMARK":
            return False
        name = thing["metadata"]["name"]
        if kind == "DELETED":
            self._pods.pop(name, None)
        else:
            self._pods[name] = thing
        return True


def _check(response: aiohttp.ClientResponse) -> None:
    if response.status == HTTPStatus.GONE:
        raise _ExpiredError
    response.raise_for_status()
