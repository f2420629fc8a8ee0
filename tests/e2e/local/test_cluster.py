"""One cluster from up to down: every test goes on where the one before ended."""

import json
import os
import signal
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.images import pause
from local.machine import mounts, process
from local.shell import wait_until

from .world import World, second_world

PARTS = ["etcd", "containerd", "apiserver", "controllers", "scheduler", "kubelet", "proxy", "dns"]
WEB = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {
                        "terminationGracePeriodSeconds": 1,
                        "containers": [
                            {
                                "name": "web",
                                "image": pause.NAME,
                                "command": [
                                    "sh",
                                    "-c",
                                    "echo well > /tmp/index.html; exec httpd -f -p 8080 -h /tmp",
                                ],
                                "readinessProbe": {
                                    "httpGet": {"path": "/", "port": 8080},
                                    "periodSeconds": 1,
                                },
                                "ports": [{"containerPort": 8080, "hostPort": 18080}],
                                "securityContext": {
                                    "runAsNonRoot": True,
                                    "allowPrivilegeEscalation": False,
                                    "capabilities": {"drop": ["ALL"]},
                                    "seccompProfile": {"type": "RuntimeDefault"},
                                },
                                "resources": {"limits": {"memory": "64Mi", "cpu": "500m"}},
                            }
                        ],
                    },
                },
            },
        },
    ],
}


@pytest.fixture(scope="module")
def untouched() -> dict[str, list[str]]:
    return {}


@pytest.fixture(scope="module")
def world(untouched: dict[str, list[str]]) -> Iterator[World]:
    # Not tmp_path: a Unix socket's path must be short.
    with (
        tempfile.TemporaryDirectory(prefix="hypic-") as folder,
        second_world(Path(folder, "cache")) as made,
    ):
        untouched.update(made.traces())
        done = made.local("up")
        assert done.returncode == 0, done.stderr
        yield made


def assert_a_pod_answers(world: World) -> None:
    """By its Service's name, asked from inside the pod: names, Services, network, exec."""
    ask = ["timeout", "3", "wget", "-q", "-O", "-", "http://web.default/"]

    def well() -> bool:
        try:
            return world.kubectl("exec", "deploy/web", "--", *ask) == "well\n"
        except AssertionError:
            return False

    wait_until(well, what="the pod answers", deadline_s=60)


def kill_all(world: World) -> None:
    """As when a machine takes its processes away and leaves all else."""
    running = world.processes()
    for pid in running:
        process.kill(pid)
    wait_until(
        lambda: not [p for p, ticks in running.items() if ticks and process.start_ticks(p)],
        what="everything died",
        deadline_s=10,
    )


def pods(world: World) -> str:
    """Which pods run, and how often their containers were started."""
    fields = "{.items[*].metadata.uid} {.items[*].status.containerStatuses[*].restartCount}"
    return world.kubectl("get", "pods", "-o", f"jsonpath={fields}")


def test_a_deployment_runs_and_answers_by_name(world: World) -> None:
    path = world.cache / "web.json"
    path.write_text(json.dumps(WEB))
    world.kubectl("apply", "-f", str(path))
    world.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    assert_a_pod_answers(world)


def test_up_again_changes_nothing(world: World) -> None:
    before = (world.records(), pods(world))
    done = world.local("up")
    assert done.returncode == 0, done.stderr
    assert (world.records(), pods(world)) == before


def test_secrets_are_readable_by_the_owner_only(world: World) -> None:
    keys = [*world.settings.pki.glob("*.key"), *world.settings.config.glob("*.kubeconfig")]
    assert len(keys) > 10
    assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}


def test_status_names_every_part_and_the_node(world: World) -> None:
    shown = world.local("status").stdout
    for name, record in world.records().items():
        assert f"{name} " in shown
        assert str(record.pid) in shown
    assert "node local: Ready" in shown
    assert pause.NAME in shown
    assert "rm -r" in shown


def test_another_tool_may_use_it_as_an_existing_cluster(world: World) -> None:
    copy = world.cache / "copied.kubeconfig"
    copy.write_text(world.settings.admin_kubeconfig.read_text())
    before = world.records()
    done = world.local("up", KUBECONFIG=str(copy))
    assert done.returncode == 0
    assert "nothing was started here" in done.stderr
    assert world.records() == before
    refused = world.local("load", "some/image:1", KUBECONFIG=str(copy))
    assert refused.returncode == 1
    assert "push some/image:1 to a registry" in refused.stderr


@pytest.mark.parametrize("name", PARTS)
def test_a_killed_part_is_started_again_and_a_pod_still_answers(world: World, name: str) -> None:
    before = world.records()
    os.kill(before[name].pid, signal.SIGKILL)
    done = world.local("up")
    assert done.returncode == 0, done.stderr
    after = world.records()
    assert process.is_alive(after[name])
    assert [part for part in PARTS if after[part] != before[part]] == [name]
    assert_a_pod_answers(world)


def test_a_part_that_hangs_is_started_again(world: World) -> None:
    hung = world.records()["dns"]
    os.kill(hung.pid, signal.SIGSTOP)
    done = world.local("up")
    assert done.returncode == 0, done.stderr
    assert "restart dns (it ran but did not answer)" in done.stderr
    assert not process.is_alive(hung)
    assert_a_pod_answers(world)


def test_pods_that_lost_their_network_are_made_anew(world: World) -> None:
    world.run("ip", "link", "delete", "hypicbr0")
    done = world.local("up")
    assert done.returncode == 0, done.stderr
    assert_a_pod_answers(world)


def test_everything_killed_at_once_comes_back(world: World) -> None:
    kill_all(world)
    done = world.local("up")
    assert done.returncode == 0, done.stderr
    assert_a_pod_answers(world)


def test_up_after_a_reboot_brings_the_pods_back(world: World) -> None:
    """A reboot takes processes, mounts, devices and rules, and leaves the files."""
    kill_all(world)
    mounts.unmount_all(world.settings.state)
    for bridge in ("hypic0", "hypicbr0"):
        world.run("ip", "link", "delete", bridge)
    for table in ("nat", "filter", "mangle"):
        world.run("iptables", "-t", table, "-F")
        world.run("iptables", "-t", table, "-X")
    for path in (*world.settings.run.glob("*.json"), world.settings.found):
        written = json.loads(path.read_text())
        changed = {k: "another" for k in ("boot_id", "network") if k in written}
        path.write_text(json.dumps(written | changed))
    done = world.local("up")
    assert done.returncode == 0, done.stderr
    assert_a_pod_answers(world)


def test_down_leaves_nothing(world: World, untouched: dict[str, list[str]]) -> None:
    before = world.processes()
    assert len(before) > len(PARTS)
    assert world.traces() != untouched
    done = world.local("down")
    assert done.returncode == 0, done.stderr
    left = [p for p, ticks in before.items() if ticks and process.start_ticks(p) == ticks]
    assert left == []
    assert world.traces() == untouched
    assert not world.settings.state.exists()
    assert (world.cache / "tools").exists()


def test_down_again_is_harmless(world: World) -> None:
    done = world.local("down")
    assert done.returncode == 0
    assert "nothing is up" in done.stderr


def test_up_after_down_is_a_new_cluster_within_15_s(world: World) -> None:
    done = world.local("up")
    assert done.returncode == 0, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert float(last.split("node Ready, ")[1].split(" s")[0]) < 15
    assert "web" not in world.kubectl("get", "deployments")


def test_left_overs_of_a_dead_cluster_are_removed_by_down(
    world: World, untouched: dict[str, list[str]]
) -> None:
    kill_all(world)
    done = world.local("down")
    assert done.returncode == 0, done.stderr
    assert world.traces() == untouched


def test_down_from_another_network_leaves_that_ones_devices_alone(world: World) -> None:
    assert world.local("up").returncode == 0
    mine = world.settings.found
    text = mine.read_text()
    mine.write_text(json.dumps({**json.loads(text), "network": "another"}))
    before = world.traces()["devices"]
    assert world.local("down").returncode == 0
    assert world.traces()["devices"] == before
