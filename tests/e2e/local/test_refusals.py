"""What cannot work is said at once, in one message, and nothing is started."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.settings import REPOSITORY

from .world import World, second_world

NOBODY = 65534
LISTEN = (
    "import socket, sys; s = socket.create_server(('127.0.0.1', 2379)); "
    "print('listening', flush=True); sys.stdin.read()"
)


@pytest.fixture
def world() -> Iterator[World]:
    with (
        tempfile.TemporaryDirectory(prefix="hypic-") as folder,
        second_world(Path(folder, "cache")) as made,
    ):
        yield made


def test_a_used_port_is_refused_and_its_owner_named(world: World) -> None:
    inside = ["nsenter", f"--net=/run/netns/{world.namespace}", sys.executable, "-c", LISTEN]
    with subprocess.Popen(
        inside, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "listening\n"
        done = world.local("up")
        owner.communicate("")
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    assert "127.0.0.1:2379 is used by python" in done.stderr
    assert str(owner.pid) in done.stderr
    assert not world.settings.state.exists()


def test_a_small_disk_is_refused_with_the_number(world: World) -> None:
    small = world.cache / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", small], check=True)
    try:
        done = world.local("up", HYPIC_CACHE=str(small))
    finally:
        subprocess.run(["umount", small], check=True)
    assert done.returncode == 1
    assert "need about 25 GB" in done.stderr
    assert "0.1 GB free" in done.stderr


def test_who_is_not_root_is_told_what_to_do() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        shutil.copytree(REPOSITORY / "local", Path(folder, "local"))
        done = subprocess.run(
            ["/usr/bin/python3", "-m", "local", "up"],
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "HYPIC_CACHE": "/tmp/nobody"},
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    assert "must run as root" in done.stderr
    assert "KUBECONFIG" in done.stderr


def test_a_cluster_that_does_not_answer_is_refused(world: World) -> None:
    kubeconfig = world.cache / "gone.kubeconfig"
    kubeconfig.write_text(
        '{"apiVersion": "v1", "kind": "Config", "current-context": "c", '
        '"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], '
        '"contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}]}'
    )
    done = world.local("up", KUBECONFIG=str(kubeconfig))
    assert done.returncode == 1
    assert "does not answer" in done.stderr
    assert "unset KUBECONFIG" in done.stderr
