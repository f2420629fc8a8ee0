"""The operator may die before or after any request; the next one ends where it would have."""

from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from hypic_operator import connection
from hypic_operator.cluster import Cluster
from hypic_operator.connection import Connection
from hypic_operator.drainer import Drainer
from hypic_operator.errors import UnavailableError
from hypic_operator.metrics import Metrics
from hypic_operator.prober import Answers
from hypic_operator.reconcile import Reconciler
from hypic_operator.settings import Settings
from hypic_operator.wakeups import Key

from ...support import apiserver, resources
from ...support.playing import Namespace, PlayedProber


class Dying(Connection):
    """Ends with an error at its n-th write: before it is sent, or when it has been done."""

    def __init__(self, reached_by: Any, *, at: int, sent: bool) -> None:
        super().__init__(reached_by)
        self.writes = 0
        self._at = at
        self._sent = sent

    async def answer(self, verb: str, path: str, *rest: Any, **named: Any) -> tuple[int, Any]:
        self.writes += verb != "GET"
        dies = verb != "GET" and self.writes == self._at
        if dies and not self._sent:
            raise UnavailableError("died before the request")
        found = await super().answer(verb, path, *rest, **named)
        if dies:
            raise UnavailableError("died after the request")
        return found


async def _look(namespace: Namespace, cluster: str, *, at: int = 0, sent: bool = False) -> int:
    """One operator's one look at a cluster, and how many writes it made."""
    kubeconfig = str(namespace.server.kubeconfig(apiserver.OPERATOR))
    dying = Dying(await connection.configuration(kubeconfig), at=at, sent=sent)
    metrics = Metrics(CollectorRegistry())
    settings = Settings(resources.POLICY)
    answers = Answers(PlayedProber(), lambda _: None, metrics, period_s=60.0)
    async with dying, aiohttp.ClientSession() as session:
        reconciler = Reconciler(
            Cluster(dying, metrics), answers, Drainer(session), settings, metrics
        )
        await reconciler.reconcile(Key(namespace.name, cluster))
    await answers.close()
    return dying.writes


def _shape(namespace: Namespace, cluster: str) -> list[tuple[str, str, Any]]:
    """What was made, without what differs from one cluster to another."""
    return sorted(
        (item["kind"], item["metadata"]["name"].replace(cluster, "NAME"), item.get("replicas"))
        for item in namespace.children(cluster)
    )


@pytest.mark.parametrize("sent", [False, True])
async def test_the_first_look_may_end_anywhere(namespace: Namespace, *, sent: bool) -> None:
    namespace.create(resources.manifest("whole"))
    total = await _look(namespace, "whole")
    assert total > 10
    whole = _shape(namespace, "whole")
    for at in range(1, total + 1):
        name = f"cut{at}"
        namespace.create(resources.manifest(name))
        with pytest.raises(UnavailableError):
            await _look(namespace, name, at=at, sent=sent)
        await _look(namespace, name)
        assert _shape(namespace, name) == whole
        assert await _look(namespace, name) <= 1  # the status of the HypicRole, once it is seen
        assert await _look(namespace, name) == 0


@pytest.mark.parametrize("sent", [False, True])
async def test_a_change_of_revision_may_end_anywhere(namespace: Namespace, *, sent: bool) -> None:
    namespace.create(resources.manifest())
    await _look(namespace, "demo")
    for at, seam in enumerate(
        ("16", "32", "64", "128"), 1
    ):  # its writes: the old set, two statuses, event
        (old,) = namespace.sets("demo")
        namespace.play_pods(old, resources.READY)
        await _look(namespace, "demo")
        namespace.patch("HypicCluster", "demo", {"spec": {"pic": {"seam": seam}}})
        await _look(namespace, "demo")
        (new,) = (item for item in namespace.sets("demo") if item["metadata"] != old["metadata"])
        namespace.play_pods(new, resources.READY)
        with pytest.raises(UnavailableError):
            await _look(namespace, "demo", at=at, sent=sent)
        await _look(namespace, "demo")
        namespace.delete("Pod", f"{old['metadata']['name']}-0")
        await _look(namespace, "demo")
        names = [item["metadata"]["name"] for item in namespace.sets("demo")]
        assert names == [new["metadata"]["name"]]
