"""Whatever the API server does to the operator: the end is the same, and nothing is doubled."""

import signal
from collections import Counter
from collections.abc import Iterator

import pytest

from ...support import apiserver, resources
from ...support.apiserver import ApiServer
from ...support.controllers import Controllers
from ...support.faulty import Asked, Fault, Faulty
from ...support.playing import Namespace
from ...support.waiting import eventually
from .conftest import Operating, grant, install

WITHIN_S = 120.0
# One in so many requests fails.
EACH_WRITE, EACH_READ = 7, 50


@pytest.fixture
def faulty(server: ApiServer) -> Iterator[Faulty]:
    with Faulty(server) as found:
        yield found


def _started(namespace: Namespace) -> Counter[str]:
    """How often each revision is said to have been started."""
    events = namespace.listed("Event")
    return Counter(item["message"] for item in events if item["reason"] == "RevisionStarted")


def _settled(namespace: Namespace, seam: str = "") -> None:
    """Change the seam, and wait until all is as the spec asks, with one set of engines."""
    if seam:
        namespace.patch("HypicCluster", "demo", {"spec": {"pic": {"seam": seam}}})
    eventually(
        lambda: (
            namespace.condition("demo", "Ready").get("status"),
            namespace.condition("demo", "Progressing").get("reason"),
        ),
        until=("True", "Settled").__eq__,
        within_s=WITHIN_S,
    )
    assert len(namespace.sets("demo")) == 1


@pytest.mark.parametrize(
    "fault",
    [
        Fault(409),
        Fault(429, {"Retry-After": "1"}),
        Fault(500),
        Fault(503),
        Fault(504),
    ],
    ids=lambda fault: str(fault.status),
)
def test_answers_that_fail_now_and_then_change_nothing_in_the_end(
    namespace: Namespace, operating: Operating, faulty: Faulty, fault: Fault
) -> None:
    seen: Counter[bool] = Counter()

    def decide(asked: Asked) -> Fault | None:
        if asked.verb == "WATCH" or (fault.status == 409 and not asked.writes):
            return None  # no API server tells a reader of a conflict
        seen[asked.writes] += 1
        fails = seen[asked.writes] % (EACH_WRITE if asked.writes else EACH_READ) == 0
        return fault if fails else None

    faulty.decide = decide
    namespace.create(resources.manifest())
    with Controllers(namespace), operating(kubeconfig=str(faulty.kubeconfig())):
        _settled(namespace)
        _settled(namespace, "16")
    assert seen[True] > 2 * EACH_WRITE
    assert all(times == 1 for times in _started(namespace).values())


def test_an_api_server_that_throttles_is_left_alone_for_as_long_as_it_says(
    namespace: Namespace, operating: Operating, faulty: Faulty
) -> None:
    own = namespace.path("HypicCluster", "demo")

    def reads() -> list[Asked]:
        return [asked for asked in faulty.asked if (asked.verb, asked.path) == ("GET", own)]

    faulty.decide = lambda asked: (
        Fault(429, {"Retry-After": "3"}) if asked.path == own and len(reads()) == 1 else None
    )
    namespace.create(resources.manifest())
    with operating(kubeconfig=str(faulty.kubeconfig())):
        first, second = eventually(reads, until=lambda seen: len(seen) >= 2)[:2]
    assert second.at_s - first.at_s >= 3.0


@pytest.mark.parametrize("status", [410, 503])
def test_a_change_after_all_watches_were_lost_is_seen(
    namespace: Namespace, operating: Operating, faulty: Faulty, status: int
) -> None:
    namespace.create(resources.manifest())
    with Controllers(namespace), operating(kubeconfig=str(faulty.kubeconfig())):
        _settled(namespace)
        gone = Fault(status)
        faulty.decide = lambda asked: gone if asked.verb == "WATCH" else None
        assert faulty.cut_watches() > 10
        namespace.patch("HypicCluster", "demo", {"spec": {"pic": {"seam": "16"}}})
        refused = len(faulty.asked)
        eventually(lambda: len(faulty.asked) > refused)
        faulty.decide = lambda _: None
        _settled(namespace)


@pytest.fixture
def own() -> Iterator[Namespace]:
    """A namespace of an API server that may be ended and held still."""
    with apiserver.running() as found:
        install(found)
        grant(found)
        status, answer = found.request("POST", "/api/v1/namespaces", {"metadata": {"name": "own"}})
        assert status == 201, answer
        yield Namespace(found, "own")


def test_an_api_server_that_dies_and_an_etcd_that_stands_still_end_nothing(
    own: Namespace, operating: Operating
) -> None:
    server = own.server
    kubeconfig = str(server.kubeconfig(apiserver.OPERATOR))
    own.create(resources.manifest())
    with operating(kubeconfig=kubeconfig, namespaces=("own",)):
        with Controllers(own):
            _settled(own)
        server.apiserver.send(signal.SIGKILL)
        eventually(lambda: server.apiserver.ended)
        server.apiserver.start()
        server.wait_until_up()
        with Controllers(own):
            _settled(own, "16")
        server.etcd.send(signal.SIGSTOP)
        try:
            assert server.request("GET", "/readyz?timeout=5s")[0] != 200
        finally:
            server.etcd.send(signal.SIGCONT)
        server.wait_until_up()
        with Controllers(own):
            _settled(own, "32")
    assert all(times == 1 for times in _started(own).values())
