"""Addresses of services and pods that this machine can open.

On a cluster of this machine they are those of the cluster itself; on another one, ports that
kubectl forwards for as long as the demo runs.
"""

import contextlib
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Self

from ..errors import FailedError
from .kube import Kubectl

CONNECT_TIMEOUT_S = 2.0
END_TIMEOUT_S = 10.0
FORWARDING = re.compile(r"Forwarding from (127\.0\.0\.1:\d+)")


def opens(ip: str, port: int) -> bool:
    """Whether a TCP connection to that address opens from here."""
    try:
        with socket.create_connection((ip, port), timeout=CONNECT_TIMEOUT_S):
            return True
    except OSError:
        return False


@contextmanager
def forwarded(kubectl: Kubectl, target: str, port: int) -> Iterator[str]:
    """A loopback address that kubectl forwards to ``target``, such as ``service/demo``."""
    command = kubectl.command("port-forward", target, f":{port}", "--address", "127.0.0.1")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            found = FORWARDING.match(said)
            if found is None:
                raise FailedError(f"kubectl could not forward a port to {target}: {said.strip()}")
            yield found[1]
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_TIMEOUT_S)
            process.kill()


@dataclass(slots=True)
class Reach:
    """Opens what the demo talks to, and keeps forwarded ports until it is closed."""

    kubectl: Kubectl
    stack: ExitStack = field(default_factory=ExitStack)

    def url(self, target: str, ip: str, port: int) -> str:
        """An address of a service or pod that can be opened from this machine."""
        if opens(ip, port):
            return f"http://{ip}:{port}"
        return "http://" + self.stack.enter_context(forwarded(self.kubectl, target, port))

    def __enter__(self) -> Self:
        """Nothing is opened until it is asked for."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the processes that forward ports."""
        self.stack.close()
