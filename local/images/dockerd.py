"""A Docker daemon of our own for the time of a build: other root, other socket, no network changes.

BuildKit comes with Debian's docker.io; nothing here touches a Docker that the machine runs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .. import packages
from ..errors import FailedError
from ..machine import mounts, process
from ..progress import step
from ..settings import Settings
from ..shell import attempt, run, wait_until

START_DEADLINE_S = 60.0
END_GRACE_S = 15.0
RECIPE = "1"


@dataclass(frozen=True, slots=True)
class Docker:
    """How to talk to the daemon."""

    program: Path
    socket: Path

    def __call__(self, *words: str | Path, env: dict[str, str] | None = None) -> str:
        """Run one docker command."""
        return run([*self._start(), *words], env=env)

    def has_image(self, name: str) -> bool:
        """Whether the daemon has an image of this name."""
        return attempt([*self._start(), "image", "inspect", name]).returncode == 0

    def answers(self) -> bool:
        """Whether the daemon is there."""
        return attempt([*self._start(), "info"]).returncode == 0

    def _start(self) -> tuple[str, ...]:
        return str(self.program), "--host", f"unix://{self.socket}"


@contextmanager
def running(settings: Settings) -> Iterator[Docker]:
    """Start the daemon, hand it out, and end it with everything that it started."""
    packages.ensure(packages.BUILD)
    home = settings.cache / "docker"
    home.mkdir(parents=True, exist_ok=True)
    _end_left_over(home)
    docker = Docker(packages.program("docker"), home / "docker.sock")
    with step("start a Docker daemon for the build"):
        record = _start(settings, home)
        try:
            wait_until(
                lambda: _answers(docker, record, home),
                what="the Docker daemon answers",
                deadline_s=START_DEADLINE_S,
            )
        except BaseException:
            _end_left_over(home)
            raise
    try:
        yield docker
    finally:
        _end_left_over(home)


def _start(settings: Settings, home: Path) -> process.Record:
    (home / "daemon.json").write_text("{}\n")
    argv = [
        str(packages.program("dockerd")),
        f"--config-file={home}/daemon.json",
        f"--data-root={home}/data",
        f"--exec-root={home}/exec",
        f"--pidfile={home}/docker.pid",
        f"--host=unix://{home}/docker.sock",
        "--bridge=none",
        "--iptables=false",
        "--ip6tables=false",
        "--ip-forward=false",
        "--ip-masq=false",
        "--log-level=warn",
    ]
    log = home / "dockerd.log"
    return process.start(
        "dockerd", argv, folder=home, log=log, env=settings.environment, inputs=RECIPE
    )


def _answers(docker: Docker, record: process.Record, home: Path) -> bool:
    if not process.is_alive(record):
        lines = (home / "dockerd.log").read_text(errors="replace").splitlines()[-8:]
        raise FailedError("\n".join(["the Docker daemon ended at once:", *lines]))
    return docker.answers()


def _end_left_over(home: Path) -> None:
    """End the daemon of this or of an interrupted run; its own containerd ends with it."""
    record = process.read(home, "dockerd")
    if record is not None:
        process.end(record, grace_s=END_GRACE_S)
        (home / "dockerd.json").unlink()
    (home / "docker.pid").unlink(missing_ok=True)
    mounts.unmount_all(home)
