"""What the API server may say to a watch of pods, played: a real one does so only after hours."""

import json

from hypic_router.settings import KubeApi

from ...support.fake_engine import FakeEngine
from ...support.routers import routing
from ...support.wire import eventually


async def test_an_expired_watch_is_made_good_by_a_list():
    lists = 0
    watches: list[str] = []
    pod = {
        "metadata": {"name": "p", "uid": "1", "resourceVersion": "7"},
        "status": {"podIP": "127.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]},
    }

    async def behave(request, reader, writer, **_):
        nonlocal lists
        if request.path.endswith("/pods") and "watch=1" in request.target:
            watches.append(request.target)
            match len(watches):
                case 1:
                    bookmark = {
                        "type": "BOOKMARK",
                        "object": {"metadata": {"resourceVersion": "9"}},
                    }
                    send(writer, 200, json.dumps(bookmark).encode() + b"\n")
                case 2:
                    gone = {"type": "ERROR", "object": {"code": 410, "message": "too old"}}
                    send(writer, 200, json.dumps(gone).encode() + b"\n")
                case 3:
                    send(writer, 410, b"{}")
                case _:
                    await reader.read()
        elif request.path.endswith("/pods"):
            lists += 1
            items = {"items": [pod], "metadata": {"resourceVersion": "8"}}
            send(writer, 200, json.dumps(items).encode())
        await writer.drain()
        return True

    def send(writer, status, body):
        head = (
            f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        )
        writer.write(head.encode() + b"\r\n\r\n" + body)

    async with FakeEngine() as engine, FakeEngine() as api:
        api._answer = behave
        kube = KubeApi(api.url, "", "")
        async with routing(
            [], ready=1, kube_api=kube, cluster="c", namespace="n", engine_port=engine.port
        ):
            await eventually(lambda: len(watches) >= 4)
            assert "resourceVersion=8" in watches[0]
            assert "resourceVersion=9" in watches[1]
            assert "resourceVersion=8" in watches[2]
            assert lists == 3
