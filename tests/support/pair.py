"""A prefill and a decode server of this checkout's plugin, real transfers between them over TCP."""

import concurrent.futures
import contextlib
import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .engine_server import Engine, free_port, together

HOST = "127.0.0.1"
# An engine whose peer is gone says so within the time of a test.
VARIABLES = {
    "SGLANG_HOST_IP": HOST,
    "HOST_IP": HOST,
    "SGLANG_DISAGGREGATION_BOOTSTRAP_TIMEOUT": "60",
    "SGLANG_DISAGGREGATION_WAITING_TIMEOUT": "60",
}

FLAGS = ("--pic-enable", "--enable-cache-report", "--enable-metrics", "--skip-server-warmup")

Answer = tuple[int, Any]


@dataclass(frozen=True)
class Pair:
    """Both servers; every request goes to both."""

    prefill: Engine
    decode: Engine
    bootstrap_port: int

    def with_room(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body with the place where the two meet."""
        return body | {
            "bootstrap_host": HOST,
            "bootstrap_port": self.bootstrap_port,
            "bootstrap_room": random.getrandbits(62),
        }

    def ask(self, path: str, body: dict[str, Any], timeout_s: float = 120) -> tuple[Answer, Answer]:
        """What prefill and decode answer."""
        roomed = self.with_room(body)
        with concurrent.futures.ThreadPoolExecutor(2) as legs:
            asked = [
                legs.submit(server.post, path, roomed, timeout_s)
                for server in (self.prefill, self.decode)
            ]
            first, second = (leg.result() for leg in asked)
        return first, second

    def generate(self, text: str, *, n_tokens: int) -> Any:
        """The decode server's answer."""
        sampling = {"temperature": 0, "max_new_tokens": n_tokens, "ignore_eos": True}
        (_, left), (status, answer) = self.ask(
            "/generate", {"text": text, "sampling_params": sampling}
        )
        assert status == 200, (left, answer)
        return answer


@contextlib.contextmanager
def pair(model: Path, folder: Path, *, path: Path | None = None, **more: str) -> Iterator[Pair]:
    """Both servers, started side by side.

    Args:
        model: that both serve.
        folder: for their logs.
        path: one more folder of packages.
        more: further variables of their environment.
    """
    variables = VARIABLES | more
    if path is not None:
        variables["PYTHONPATH"] = os.pathsep.join([str(path), os.environ["PYTHONPATH"]])
    prefill, port = prefilling(model, folder / "prefill.log", variables)
    decode = decoding(model, folder / "decode.log", variables)
    with together(prefill, decode):
        yield Pair(prefill, decode, port)


def prefilling(
    model: Path, log: Path, variables: Mapping[str, str] = VARIABLES
) -> tuple[Engine, int]:
    """A prefill server that is still to be started, and its bootstrap port."""
    port = free_port()
    role = ("--disaggregation-mode", "prefill", "--disaggregation-bootstrap-port", str(port))
    return Engine(model, log, flags=(*FLAGS, *role), variables=variables), port


def decoding(model: Path, log: Path, variables: Mapping[str, str] = VARIABLES) -> Engine:
    """A decode server that is still to be started."""
    flags = (*FLAGS, "--disaggregation-mode", "decode")
    return Engine(model, log, flags=flags, variables=variables)
