"""The operator may die before or after any request; the next one ends where it would have."""

import asyncio
import random
import time
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from hypic_operator import connection
from hypic_operator.cluster import Cluster
from hypic_operator.connection import Connection
from hypic_operator.errors import UnavailableError
from hypic_operator.metrics import Metrics
from hypic_operator.pods.asking import Asking
from hypic_operator.pods.calling import Caller
from hypic_operator.reconcile import Reconciler
from hypic_operator.scope import Everywhere
from hypic_operator.settings import Settings
from hypic_operator.wakeups import Key

from ...support import apiserver, resources
from ...support.controllers import Controllers
from ...support.playing import LABEL, Namespace, PlayedProber


class Dying(Connection):
    """Ends with an error at its n-th write: before it is sent, or when it has been done."""

    def __init__(self, reached_by: Any, *, at: int, sent: bool) -> None:
        super().__init__(reached_by)
        self.writes = 0
        self._at = at
        self._sent = sent

    async def answer(self, verb: str, path: str, *rest: Any, **named: Any) -> tuple[int, Any]:
        self.writes += verb != "GET"
        if verb != "GET" and 0 < self._at < self.writes:
            raise UnavailableError("is dead")
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
    async with dying, aiohttp.ClientSession() as session:
        caller = Caller(session)
        asking = Asking(caller, PlayedProber(), lambda _: None, metrics, probe_period_s=60.0)
        api = Cluster(dying, metrics)
        reconciler = Reconciler(api, asking, Everywhere(), settings, metrics)
        await reconciler.reconcile(Key(namespace.name, cluster))
        await asking.close()
    return dying.writes


def _replicas(item: Mapping[str, Any]) -> Any:
    return item.get("spec", {}).get("replicas")


def _shape(namespace: Namespace, cluster: str) -> list[tuple[str, str, Any]]:
    """What was made, without what differs from one cluster to another."""
    return sorted(
        (item["kind"], item["metadata"]["name"].replace(cluster, "NAME"), _replicas(item))
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


HISTORIES = 2
SETTLED_WITHIN_S = 60.0


def _change(namespace: Namespace, cluster: str, chance: random.Random) -> None:
    """Something that a user changes, or undoes again."""
    prefill = {"replicas": chance.randint(1, 3)}
    spec: dict[str, Any] = chance.choice(
        [
            {"prefill": prefill},
            {"pic": {"seam": chance.choice(["8", "16", "32"])}},
            {"router": {"replicas": chance.randint(1, 3)}},
            {"prefill": prefill, "pic": {"seam": chance.choice(["8", "16"])}},
        ]
    )
    namespace.patch("HypicCluster", cluster, {"spec": spec})


async def _settle(namespace: Namespace, cluster: str, dying: random.Random | None) -> int:
    """Operators look, and die where chance has it, until all is done; returns how many died."""
    deadline_s, deaths = time.monotonic() + SETTLED_WITHIN_S, 0
    while time.monotonic() < deadline_s:
        at = dying.randint(1, 12) if dying and dying.random() < 0.6 else 0
        try:
            await _look(namespace, cluster, at=at, sent=bool(at % 2))
        except UnavailableError:
            deaths += 1
            continue
        if namespace.condition(cluster, "Progressing").get("reason") == "Settled":
            return deaths
        await asyncio.sleep(0.1)
    raise AssertionError(namespace.condition(cluster, "Progressing"))


@pytest.mark.parametrize("seed", range(HISTORIES))
async def test_a_history_of_changes_ends_the_same_wherever_operators_die(
    namespace: Namespace, seed: int
) -> None:
    deaths = 0
    with Controllers(namespace):
        for cluster in ("calm", "wild"):
            namespace.create(resources.manifest(cluster))
            changes = random.Random(seed)
            dying = random.Random(seed) if cluster == "wild" else None
            for _ in range(3):
                deaths += await _settle(namespace, cluster, dying)
                _change(namespace, cluster, changes)
            deaths += await _settle(namespace, cluster, dying)
    assert _shape(namespace, "wild") == _shape(namespace, "calm")
    assert deaths > 0
    for cluster in ("calm", "wild"):
        (made,) = namespace.sets(cluster)
        names = [pod["metadata"]["name"] for pod in namespace.listed("Pod", f"{LABEL}={cluster}")]
        assert len(names) == made["spec"]["replicas"]
        assert await _look(namespace, cluster) == 0
