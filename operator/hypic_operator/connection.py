"""One request to kube-apiserver: how it is reached, and what its answers mean.

Knows no kinds; `cluster` does, and is the only user. Speaks through the official client's
asynchronous transport, which knows how to authenticate and to renew a pod's token.
"""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Self

import aiohttp
from kubernetes.aio import client as kubernetes
from kubernetes.aio import config

from .core import names
from .errors import ClusterError, RefusedError, UnavailableError

TIMEOUT_S = 20.0
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
_JSON = "application/json"
_AGAIN = {
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.CONFLICT,
    HTTPStatus.TOO_MANY_REQUESTS,
}
_LATER = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
_SAID_LIMIT = 400


async def configuration(kubeconfig: str) -> kubernetes.Configuration:
    """How to reach the API server: the file that is named, else the pod's account, else ~/.kube.

    Raises:
        ClusterError: there is none of them.
    """
    found = kubernetes.Configuration()
    load: Any = config  # has no types
    try:
        if not kubeconfig and _in_a_pod(found):
            return found
        await load.load_kube_config(
            kubeconfig or None, client_configuration=found, persist_config=False
        )
    except (config.ConfigException, OSError) as error:
        raise ClusterError(f"no way to reach a kube-apiserver: {error}") from error
    return found


def _in_a_pod(found: kubernetes.Configuration) -> bool:
    load: Any = config
    try:
        load.load_incluster_config(client_configuration=found)
    except config.ConfigException:
        return False
    return True


class Connection:
    """Sends requests, with the credentials of the moment."""

    def __init__(self, reached_by: kubernetes.Configuration) -> None:
        # As kopf does, and because with proxies of the environment each request takes two threads.
        reached_by.client_session_kwargs = {"trust_env": False}
        self._client: Any = kubernetes.ApiClient(reached_by)  # has types in part
        self._host = reached_by.host

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def answer(
        self,
        verb: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = _JSON,
    ) -> tuple[int, Any]:
        """Status and JSON of one request, whatever the status.

        Raises:
            UnavailableError: no answer came, or one that says when to ask again.
        """
        headers = {"Accept": _JSON, "Content-Type": content_type}
        headers["User-Agent"] = names.FIELD_MANAGER
        client = self._client
        try:
            method, url, headers, body, _ = await client.param_serialize(
                verb,
                path,
                query_params=list((query or {}).items()),
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
            )
            answer = await client.call_api(method, url, headers, body, _request_timeout=TIMEOUT_S)
            raw = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnavailableError(f"{verb} {path}: {error!r}") from error
        retry_after = answer.headers.get("Retry-After", "")
        if answer.status in _LATER and retry_after.isdecimal():
            said = raw.decode(errors="replace")[:_SAID_LIMIT]
            raise UnavailableError(
                f"status {answer.status}: {said}", retry_after_s=float(retry_after)
            )
        return answer.status, json.loads(raw) if raw[:1] == b"{" else raw.decode()


def done(status: int, body: Any) -> Any:
    """The body of an answer that did what was asked; else the error that it stands for.

    Raises:
        RefusedError: the API server will not have it.
        UnavailableError: try again.
    """
    if status < HTTPStatus.BAD_REQUEST:
        return body
    said = body if isinstance(body, Mapping) else {}
    message = str(said.get("message") or body)
    if status in _AGAIN or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise UnavailableError(f"status {status}: {message}")
    raise RefusedError(str(said.get("reason") or "Refused"), message)
