import asyncio
import contextlib
import subprocess
import sys

from hypic_engine.plugin.front.attendance import Attendance
from hypic_engine.plugin.front.door import Door

PATHS = frozenset({"/generate"})


def scope(path="/generate", method="POST"):
    return {"type": "http", "method": method, "path": path, "root_path": ""}


def through(attendance, asked, app):
    """What one request is told: its status and headers."""
    told = []

    async def send(message):
        told.append(message)

    asyncio.run(Door(app, attendance=attendance, paths=PATHS)(asked, None, send))
    return told[0]["status"], dict(told[0]["headers"])


async def serves(_scope, _receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})


def test_a_request_counts_while_it_is_served_and_not_after_however_it_ends(tmp_path):
    attendance = Attendance(tmp_path)
    seen = []

    async def fails(*_):
        seen.append(attendance.inside())
        raise ConnectionResetError

    with contextlib.suppress(ConnectionResetError):
        through(attendance, scope(), fails)
    assert [inside.n_requests for inside in seen] == [1]
    assert attendance.inside().n_requests == 0


def test_what_is_no_work_is_not_counted_and_passes_during_a_drain(tmp_path):
    attendance = Attendance(tmp_path)
    attendance.drain(5)
    for asked in (scope("/health", "GET"), scope("/generate", "GET"), scope("/pic/drain")):
        assert through(attendance, asked, serves)[0] == 200


def test_during_a_drain_work_is_refused_in_words_that_a_router_knows(tmp_path):
    attendance = Attendance(tmp_path)
    attendance.drain(5)
    status, headers = through(attendance, scope(), serves)
    assert status == 503
    assert headers[b"x-hypic-draining"] == b"1"
    assert int(headers[b"retry-after"]) > 0
    attendance.resume()
    assert through(attendance, scope(), serves)[0] == 200


def test_a_path_below_a_proxy_s_prefix_is_known(tmp_path):
    attendance = Attendance(tmp_path)
    attendance.drain(5)
    below = scope("/behind/generate") | {"root_path": "/behind"}
    assert through(attendance, below, serves)[0] == 503


def test_the_oldest_request_is_the_first_that_is_still_inside(tmp_path):
    attendance = Attendance(tmp_path)
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        first.enter_context(attendance.request())
        age = attendance.inside().oldest_s
        second.enter_context(attendance.request())
        assert attendance.inside().n_requests == 2
        assert attendance.inside().oldest_s >= age
        first.close()
        assert attendance.inside().n_requests == 1
    assert attendance.inside().oldest_s == 0


OTHER_WORKER = """
import sys
from pathlib import Path
from hypic_engine.plugin.front.attendance import Attendance
attendance = Attendance(Path(sys.argv[1]))
with attendance.request():
    print(attendance.drain_left_s is not None, flush=True)
    sys.stdin.readline()
"""


def test_all_workers_share_one_drain_and_one_count_and_the_dead_are_not_counted(tmp_path):
    attendance = Attendance(tmp_path)
    attendance.drain(60)
    command = [sys.executable, "-c", OTHER_WORKER, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as worker:
        assert worker.stdout.readline() == "True\n"
        with attendance.request():
            assert attendance.inside().n_requests == 2
        worker.kill()
    assert attendance.inside().n_requests == 0
