"""Two operators of which one acts, killed at random writes: the end is that of calm ones."""

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from ...support import resources
from ...support.apiserver import REPOSITORY
from ...support.controllers import Controllers
from ...support.faulty import Asked, Faulty
from ...support.playing import LABEL, Namespace
from ...support.waiting import eventually

WITHIN_S = 120.0
# Writes that an operator makes before it is killed.
BETWEEN = (1, 16)
CHANGES: tuple[dict[str, Any], ...] = (
    {"prefill": {"replicas": 2}},
    {"pic": {"seam": "16"}},
    {"prefill": {"replicas": 1}, "router": {"replicas": 1}},
)


class Killed:
    """An operator's process behind a proxy, killed at its n-th write and then started again."""

    def __init__(self, namespace: Namespace, chance: random.Random) -> None:
        self.kills = 0
        self.may_die = True
        self._namespace = namespace
        self._chance = chance
        self._left = chance.randint(*BETWEEN)
        self._way = Faulty(namespace.server, self._count)
        self._process: subprocess.Popen[bytes] | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        with self._way:
            self.start()
            try:
                yield
            finally:
                self.may_die = False
                assert self._process is not None
                self._process.kill()
                self._process.wait(30)

    def start(self) -> None:
        module = "tests.support.operator_process"
        lease = f"{self._namespace.name}/op"
        command = [sys.executable, "-m", module, str(self._way.kubeconfig())]
        self._process = subprocess.Popen(
            [*command, self._namespace.name, lease],
            cwd=REPOSITORY,
            env={"PATH": os.environ["PATH"]},
            stderr=subprocess.DEVNULL,
        )

    def revive(self) -> None:
        """Start it again if it is dead, as a kubelet would."""
        if self._process is not None and self._process.poll() is not None:
            self.start()

    def _count(self, asked: Asked) -> None:
        if not asked.writes or "/leases" in asked.path or not self.may_die:
            return
        self._left -= 1
        if self._left == 0 and self._process is not None:
            self._process.kill()  # the write may still arrive, as one on its way would
            self.kills += 1
            self._left = self._chance.randint(*BETWEEN)


def _shape(namespace: Namespace) -> list[tuple[str, str, Any]]:
    return sorted(
        (item["kind"], item["metadata"]["name"], item.get("spec", {}).get("replicas"))
        for item in namespace.children("demo")
    )


def _settled(namespace: Namespace, operators: list[Killed]) -> None:
    def look() -> tuple[Any, Any]:
        for operator in operators:
            operator.revive()
        conditions = (namespace.condition("demo", kind) for kind in ("Ready", "Progressing"))
        ready, progressing = conditions
        return ready.get("status"), progressing.get("reason")

    eventually(look, until=("True", "Settled").__eq__, within_s=WITHIN_S)


def _live_through(namespace: Namespace, chance: random.Random | None) -> int:
    """All changes, each when the one before is done; returns how often an operator was killed."""
    operators = [Killed(namespace, chance or random.Random(0)) for _ in range(2 if chance else 1)]
    with Controllers(namespace), ExitStack() as stack:
        for operator in operators:
            operator.may_die = chance is not None
            stack.enter_context(operator.running())
        namespace.create(resources.manifest())
        _settled(namespace, operators)
        for spec in CHANGES:
            namespace.patch("HypicCluster", "demo", {"spec": spec})
            _settled(namespace, operators)
    return sum(operator.kills for operator in operators)


@pytest.mark.parametrize("seed", [1])
def test_the_end_is_the_same_and_nothing_is_doubled(
    namespace: Namespace, another: Namespace, seed: int
) -> None:
    assert _live_through(another, None) == 0
    assert _live_through(namespace, random.Random(seed)) >= 2
    assert _shape(namespace) == _shape(another)
    (made,) = namespace.sets("demo")
    assert len(namespace.listed("Pod", f"{LABEL}=demo")) == made["spec"]["replicas"]
    told = Counter(
        item["message"]
        for item in namespace.listed("Event")
        if item["reason"] in {"RevisionStarted", "Drained"}
    )
    assert all(times == 1 for times in told.values())
