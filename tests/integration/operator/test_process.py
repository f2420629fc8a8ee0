"""The command as the image runs it: a process of its own, ended by a signal."""

import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ...support import apiserver, resources
from ...support.apiserver import free_ports
from ...support.playing import Namespace
from ...support.waiting import eventually


def _text(url: str) -> str:
    with suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
        return str(answer.read().decode())
    return ""


@pytest.fixture
def ports() -> tuple[int, int]:
    health, metrics = free_ports(2)
    return health, metrics


@contextmanager
def _started(
    kubeconfig: Path, ports: tuple[int, int], *flags: str
) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "hypic_operator", *flags]
    command += ["--health-port", str(ports[0]), "--metrics-port", str(ports[1])]
    environment = {
        "PATH": os.environ["PATH"],
        "KUBECONFIG": str(kubeconfig),
        "HYPIC_ROUTER_IMAGE": "r:1",
        "HYPIC_ENGINE_IMAGE": "e:1",
        "HYPIC_LOG_FORMAT": "json",
    }
    found = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        yield found
    finally:
        if found.poll() is None:
            found.kill()
        found.communicate(timeout=10)


@pytest.fixture
def process(namespace: Namespace, ports: tuple[int, int]) -> Iterator[subprocess.Popen[str]]:
    kubeconfig = namespace.server.kubeconfig(apiserver.OPERATOR)
    with _started(kubeconfig, ports, "--namespace", namespace.name) as found:
        yield found


@pytest.fixture
def nowhere(tmp_path: Path) -> Path:
    """A kubeconfig whose server does not listen."""
    (port,) = free_ports(1)
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "c"}
    config |= {"clusters": [cluster], "contexts": [context], "users": [{"name": "u", "user": {}}]}  # type: ignore[dict-item]
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


def test_it_works_is_seen_and_ends_when_told(
    namespace: Namespace, ports: tuple[int, int], process: subprocess.Popen[str]
) -> None:
    namespace.create(resources.manifest())
    eventually(lambda: namespace.sets("demo"))
    eventually(lambda: _text(f"http://127.0.0.1:{ports[0]}/healthz"))
    counted = 'hypic_operator_reconcile_seconds_count{result="ok"}'
    eventually(lambda: counted in _text(f"http://127.0.0.1:{ports[1]}/metrics"))
    process.terminate()
    _, log = process.communicate(timeout=15)
    assert process.returncode == 0
    assert "Started revision" in log
    assert "Traceback" not in log


def test_without_an_api_server_it_is_alive_and_ends_when_told(
    nowhere: Path, ports: tuple[int, int]
) -> None:
    with _started(nowhere, ports) as process:
        eventually(lambda: _text(f"http://127.0.0.1:{ports[0]}/healthz"))
        process.terminate()
        _, log = process.communicate(timeout=15)
    assert process.returncode == 0
    assert "waiting for it" in log
    assert "Traceback" not in log


def test_a_health_port_that_is_taken_ends_it_with_one_line(
    nowhere: Path, ports: tuple[int, int]
) -> None:
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("0.0.0.0", ports[0]))
        holder.listen()
        with _started(nowhere, ports) as process:
            _, log = process.communicate(timeout=15)
    assert process.returncode == 2
    assert log.startswith("hypic-operator: --health-port or HYPIC_HEALTH_PORT: ")
    assert len(log.splitlines()) == 1


def test_a_setting_that_cannot_work_ends_it_with_one_line() -> None:
    command = [sys.executable, "-m", "hypic_operator"]
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "hypic-operator: --router-image or HYPIC_ROUTER_IMAGE: give the image of routers"
    ]
