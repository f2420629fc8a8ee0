"""What the operator's keys are made of, in a Secret of a real API server."""

import asyncio

from hypic_operator import connection, secret

from ...support import apiserver
from ...support.playing import Namespace

NAME = "hypic-operator-keys"  # the one that its rights name


async def _kept(namespace: Namespace, n_operators: int = 1) -> list[str]:
    file = str(namespace.server.kubeconfig(apiserver.OPERATOR))
    reached_by = await connection.configuration(file)
    async with connection.Connection(reached_by) as link:
        place = f"{namespace.name}/{NAME}"
        return await asyncio.gather(*(secret.kept(link, place) for _ in range(n_operators)))


def _made(namespace: Namespace) -> None:
    namespace.create({"kind": "Secret", "metadata": {"name": NAME}})


async def test_operators_that_start_at_once_agree_and_so_does_one_that_starts_later(
    namespace: Namespace,
) -> None:
    _made(namespace)
    found = {*await _kept(namespace, 5), *await _kept(namespace)}
    assert [len(each) for each in found] == [64]


async def test_a_secret_that_is_made_anew_gets_another_one(namespace: Namespace) -> None:
    _made(namespace)
    (first,) = await _kept(namespace)
    namespace.delete("Secret", NAME)
    _made(namespace)
    assert await _kept(namespace) != [first]


async def test_without_the_secret_there_is_none_and_nobody_makes_it(namespace: Namespace) -> None:
    assert await _kept(namespace) == [""]
    assert namespace.get("Secret", NAME) is None
