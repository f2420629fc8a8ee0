"""Engines found as pods, against a real kube-apiserver."""

import asyncio
import contextlib
import time
from collections import Counter

import pytest

from hypic_router.settings import KubeApi

from ...support import apiserver
from ...support.fake_engine import FakeEngine, streams_for_ever
from ...support.routers import chat, routing
from ...support.wire import Call, eventually

NAMESPACE = "engines"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
READER = apiserver.OPERATOR
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def api():
    with apiserver.running() as server:
        create(server, "/api/v1/namespaces", {"kind": "Namespace", "metadata": {"name": NAMESPACE}})
        rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
        verbs = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
        named = {"metadata": {"name": "router"}}
        create(server, f"{rbac}/roles", {"kind": "Role", **named, "rules": verbs})
        subjects = [{"kind": "User", "name": READER, "apiGroup": "rbac.authorization.k8s.io"}]
        role = {"kind": "Role", "name": "router", "apiGroup": "rbac.authorization.k8s.io"}
        binding = {"kind": "RoleBinding", **named, "subjects": subjects, "roleRef": role}
        create(server, f"{rbac}/rolebindings", binding)
        yield server


def create(server, path, body):
    status, answer = server.request("POST", path, body)
    assert status == 201, answer
    return answer


@pytest.fixture
async def cluster(api, request):
    """Two engines on one port, each with a running and ready pod; and a router over them."""
    token = api.folder / "reader.token"
    token.write_text(f"token-of-{READER}\n")
    name = request.node.name.split("[")[0].replace("_", "-")[:50].strip("-")
    async with (
        FakeEngine(host="127.0.0.2") as one,
        FakeEngine(host="127.0.0.3", port=one.port) as other,
    ):
        cluster = Cluster(api, name, {"127.0.0.2": one, "127.0.0.3": other})
        for index, address in enumerate(cluster.engines):
            cluster.start(index, address)
        async with gate(api.url) as door:
            cluster.door = door
            kube = KubeApi(door.url, str(token), str(api.ca_file))
            async with routing(
                [],
                ready=2,
                policy="round_robin",
                kube_api=kube,
                cluster=name,
                namespace=NAMESPACE,
                engine_port=one.port,
            ) as router:
                cluster.router = router
                yield cluster
        for pod in api.request("GET", PODS)[1]["items"]:
            cluster.kill(pod["metadata"]["name"])


class Cluster:
    """What kubelet and operator would write about the engines' pods."""

    def __init__(self, api, name, engines):
        self.api, self.name, self.engines = api, name, engines

    def start(self, index, address, **labels):
        pod = f"{self.name}-{index}"
        labels = {
            "serving.hypic.dev/cluster": self.name,
            "serving.hypic.dev/role": "both",
            **labels,
        }
        spec = {"nodeName": "node", "containers": [{"name": "engine", "image": "engine"}]}
        body = {"kind": "Pod", "metadata": {"name": pod, "labels": labels}, "spec": spec}
        create(self.api, PODS, body)
        self.status(index, podIP=address, podIPs=[{"ip": address}], phase="Running", ready=True)
        return pod

    def status(self, index, *, ready=None, **status):
        if ready is not None:
            value = "True" if ready else "False"
            status["conditions"] = [{"type": "Ready", "status": value, "message": "probe failed"}]
        path = f"{PODS}/{self.name}-{index}/status"
        self.patch(path, {"status": status})

    def annotate(self, index, value):
        metadata = {"annotations": {"serving.hypic.dev/drain": value}}
        self.patch(f"{PODS}/{self.name}-{index}", {"metadata": metadata})

    def patch(self, path, body):
        status, answer = self.api.request("PATCH", path, body, content_type=MERGE)
        assert status == 200, answer

    def terminate(self, index):
        self.api.request("DELETE", f"{PODS}/{self.name}-{index}")

    def kill(self, pod):
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        self.api.request("DELETE", f"{PODS}/{pod}", options)

    async def become(self, *states):
        """Waits until the router shows these states; a second is all it has."""
        began_s = time.monotonic()

        async def so():
            return sorted(await self.router.states()) == sorted(states)

        await eventually(so, what=f"states {states}")
        assert time.monotonic() - began_s < 1.0

    async def chosen(self, count=6):
        replies = [await self.router.chat() for _ in range(count)]
        assert {reply.status for reply in replies} == {200}
        return {reply.header("x-hypic-engine") for reply in replies}


@contextlib.asynccontextmanager
async def gate(url):
    """A way to the API server that can be shut."""
    host, port = url.removeprefix("https://").split(":")
    pipes = set()

    async def pipe(reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
        writer.close()

    async def serve(reader, writer):
        if not door.open:
            writer.close()
            return
        there, back = await asyncio.open_connection(host, int(port))
        door.writers |= {writer, back}
        pipes.update(
            {asyncio.create_task(pipe(reader, back)), asyncio.create_task(pipe(there, writer))}
        )

    class Door:
        def __init__(self):
            self.open = True
            self.writers = set()

        def shut(self):
            self.open = False
            for writer in self.writers:
                writer.transport.abort()
            self.writers = set()

    door = Door()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    door.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield door
    finally:
        server.close()
        door.shut()
        for task in pipes:
            task.cancel()
        await asyncio.gather(*pipes, return_exceptions=True)


async def test_ready_pods_of_the_cluster_are_used_by_name(cluster):
    assert await cluster.chosen() == {f"{cluster.name}-0", f"{cluster.name}-1"}


async def test_a_pod_with_the_drain_mark_receives_nothing_and_a_cancelled_drain_is_undone(cluster):
    cluster.annotate(0, "2026-12-01T00:00:00Z")
    await cluster.become("draining", "ready")
    assert await cluster.chosen() == {f"{cluster.name}-1"}
    shown = {engine["name"]: engine for engine in (await cluster.router.fleet())["engines"]}
    assert shown[f"{cluster.name}-0"]["draining"] is True
    assert "2026-12-01" in shown[f"{cluster.name}-0"]["reason"]
    cluster.annotate(0, None)
    await cluster.become("ready", "ready")


async def test_a_terminating_pod_receives_nothing_and_its_stream_goes_on(cluster):
    for engine in cluster.engines.values():
        engine.behave = streams_for_ever
    body = chat(stream=True)
    async with Call(
        cluster.router.url, "/v1/chat/completions", body, headers=("x-hypic-explain: 1",)
    ) as call:
        reply = await call.head()
        pieces = call.pieces()
        await anext(pieces)
        index = int(reply.header("x-hypic-engine")[-1])
        cluster.terminate(index)
        await cluster.become("draining", "ready")
        for engine in cluster.engines.values():
            engine.behave = FakeEngine.behave
        assert await cluster.chosen() == {f"{cluster.name}-{1 - index}"}
        for _ in range(10):
            assert await anext(pieces)
        call.drop()


async def test_a_pod_that_is_not_ready_receives_nothing(cluster):
    cluster.status(1, ready=False)
    await cluster.become("ready", "unready")
    assert await cluster.chosen() == {f"{cluster.name}-0"}
    cluster.status(1, ready=True)
    await cluster.become("ready", "ready")


@pytest.mark.parametrize("way", ["killed", "evicted", "relabelled", "no address"])
async def test_a_pod_that_vanishes_is_gone_within_a_second(cluster, way):
    match way:
        case "killed":
            cluster.kill(f"{cluster.name}-0")
        case "evicted":
            cluster.status(0, phase="Failed", podIP=None, podIPs=None, ready=False)
        case "relabelled":
            labels = {"serving.hypic.dev/role": "retired"}
            cluster.patch(f"{PODS}/{cluster.name}-0", {"metadata": {"labels": labels}})
        case "no address":
            cluster.status(0, podIP=None, podIPs=None)
    await cluster.become("ready")
    assert await cluster.chosen() == {f"{cluster.name}-1"}


async def vanish(cluster, way):
    """What becomes of the first pod, and of the engine in it."""
    engine = cluster.engines["127.0.0.2"]
    match way:
        case "killed with its engine":
            await engine.stop()
            cluster.kill(f"{cluster.name}-0")
        case "evicted":
            cluster.terminate(0)
        case "address cleared":
            cluster.status(0, phase="Failed", podIP=None, podIPs=None, ready=False)
        case "relabelled":
            labels = {"serving.hypic.dev/cluster": "retired"}
            cluster.patch(f"{PODS}/{cluster.name}-0", {"metadata": {"labels": labels}})
        case "not ready and answering":
            cluster.status(0, ready=False)
        case "frozen":

            async def frozen(_request, reader, *_, **__):
                await reader.read()
                return True

            engine._answer = frozen


@pytest.mark.parametrize(
    "way",
    [
        "killed with its engine",
        "evicted",
        "address cleared",
        "relabelled",
        "not ready and answering",
        "frozen",
    ],
)
async def test_no_request_fails_while_a_pod_goes_and_two_seconds_later_it_gets_none(cluster, way):
    async def storm(count):
        asking = []
        for i in range(count):
            asking.append(asyncio.create_task(cluster.router.chat(f"{i}")))
            await asyncio.sleep(0.01)
        return [reply.status for reply in await asyncio.gather(*asking)]

    storming = asyncio.create_task(storm(80))
    gone = cluster.engines["127.0.0.2"]
    await eventually(lambda: len(gone.generated) > 5)
    began_s = time.monotonic()
    await vanish(cluster, way)
    name = f"{cluster.name}-0"

    async def unused():
        fleet = (await cluster.router.fleet())["engines"]
        return all(one["state"] != "ready" for one in fleet if one["name"] == name)

    await eventually(unused)
    assert time.monotonic() - began_s < 2.0
    assert await storming == [200] * 80
    before = len(gone.generated)
    assert await storm(10) == [200] * 10
    assert len(gone.generated) == before


async def test_pods_of_other_clusters_are_not_engines_of_ours(cluster):
    cluster.start(2, "127.0.0.2", **{"serving.hypic.dev/cluster": "another"})
    cluster.annotate(0, "soon")
    await cluster.become("draining", "ready")
    assert len((await cluster.router.fleet())["engines"]) == 2


async def test_a_decode_pod_is_known_by_its_role_and_never_asked_alone(cluster):
    cluster.start(2, "127.0.0.2", **{"serving.hypic.dev/role": "decode"})

    async def roles():
        shown = [engine["role"] for engine in (await cluster.router.fleet())["engines"]]
        return sorted(shown) == ["both", "both", "decode"]

    await eventually(roles)
    assert f"{cluster.name}-2" not in await cluster.chosen()


async def test_a_new_pod_of_an_old_name_starts_with_an_empty_cache(cluster):
    first = cluster.engines["127.0.0.2"]
    first.store("a", "b")

    async def held():
        return sorted(await cluster.router.held()) == [0, 2]

    await eventually(held)
    cluster.kill(f"{cluster.name}-0")
    first.clear("e2")
    cluster.start(0, "127.0.0.2")

    async def empty():
        fleet = (await cluster.router.fleet())["engines"]
        return [e["segments"] for e in fleet] == [0, 0] and {e["state"] for e in fleet} == {"ready"}

    await eventually(empty)


async def test_an_api_server_that_is_away_for_a_minute_costs_no_request(cluster):
    async def seen(for_s):
        statuses, until_s = Counter(), time.monotonic() + for_s
        while time.monotonic() < until_s:
            statuses[(await cluster.router.chat()).status] += 1
            await asyncio.sleep(0.05)
        return statuses

    cluster.door.shut()
    assert set(await seen(30)) == {200}
    cluster.annotate(1, "soon")
    await cluster.engines["127.0.0.2"].stop()  # which only the engine itself can show
    assert set(await seen(30)) == {200}
    assert sorted(await cluster.router.states()) == ["ready", "unready"]
    cluster.door.open = True

    async def drains():
        return "draining" in await cluster.router.states()

    await eventually(drains)
