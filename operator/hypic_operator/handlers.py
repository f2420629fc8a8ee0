"""What kopf watches for us. Every event only wakes the HypicCluster that it is about.

Only `event` handlers: kopf keeps neither finalizers nor annotations for them, so nothing of it is
ever written into an object, and deletion never waits for the operator. Decides nothing.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from itertools import chain, repeat
from typing import Any

import kopf
from kubernetes.aio import client as kubernetes
from typing_extensions import override

from . import kinds
from .core import names
from .wakeups import Key

Wake = Callable[[Key], None]
Close = Callable[[], Awaitable[None]]
_OURS_ONLY = f"{names.LABEL_MANAGED_BY}={names.FIELD_MANAGER}"


def registry(
    wake: Wake, close: Close, reached_by: kubernetes.Configuration
) -> kopf.OperatorRegistry:
    """A registry of its own; kopf's default one stays empty.

    Args:
        wake: called with the HypicCluster that an event is about.
        close: called when kopf has stopped watching.
        reached_by: how to reach the API server.
    """
    found = kopf.OperatorRegistry()

    @kopf.on.cleanup(registry=found)
    async def stop(**_: Any) -> None:
        await close()

    @kopf.on.login(registry=found)
    async def login(**_: Any) -> kopf.ConnectionInfo:
        return await connection(reached_by)

    @kopf.on.event(names.GROUP, names.VERSION, names.PLURAL, registry=found)
    async def cluster_changed(namespace: str | None, name: str, **_: Any) -> None:
        wake(Key(namespace or "", name))

    async def child_changed(namespace: str | None, labels: Mapping[str, str], **_: Any) -> None:
        owner = names.owner_of(labels)
        if owner is not None:
            wake(Key(namespace or "", owner))

    for group, version, plural in _watched():
        kopf.on.event(group, version, plural, registry=found, id=plural)(child_changed)
    return found


def settings() -> kopf.OperatorSettings:
    """Settings of kopf: it sees what is ours, posts nothing and looks at no other kinds."""
    found = kopf.OperatorSettings()
    found.posting.enabled = False
    found.scanning.disabled = True
    found.peering.standalone = True
    found.networking.error_backoffs = _WithoutEnd()
    found.persistence.diffbase_storage = _NoDifferences()
    for place in _watched():
        found.watching.label_selectors[place] = _OURS_ONLY
    return found


class _WithoutEnd:
    """Seconds between attempts: an API server may be away for long, and is back without a word."""

    def __iter__(self) -> Iterator[float]:
        return chain((0.5, 1.0, 2.0), repeat(5.0))


class _NoDifferences(kopf.AnnotationsDiffBaseStorage):
    """What kopf compares objects by: nothing, as no handler asks what has changed in one."""

    @override
    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence()


async def connection(reached_by: kubernetes.Configuration) -> kopf.ConnectionInfo:
    """The operator's own way to the API server, for kopf; asked again when it is turned away."""
    header = await reached_by.get_api_key_with_prefix("BearerToken")
    token = header.split(" ", 1)[-1] if header else None
    return kopf.ConnectionInfo(
        server=reached_by.host,
        ca_path=reached_by.ssl_ca_cert,
        insecure=not reached_by.verify_ssl,
        token=token,
        certificate_path=reached_by.cert_file,
        private_key_path=reached_by.key_file,
    )


def _watched() -> list[tuple[str, str, str]]:
    """Group, version and plural of what is made, and of the pods that come of it."""
    found = []
    for prefix, plural in (*kinds.KINDS.values(), kinds.PODS):
        group, _, version = prefix.removeprefix("apis/").rpartition("/")
        found.append(("" if prefix == "api/v1" else group, version, plural))
    return found
