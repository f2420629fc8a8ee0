"""A real SGLang server of this checkout's plugin, for as long as a test needs it."""

import concurrent.futures
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

START_TIMEOUT_S = 600
STOP_TIMEOUT_S = 30


def free_port() -> int:
    """A port that leaves room above it: SGLang derives another one by adding 10,000."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


CPU = {
    "SGLANG_USE_CPU_ENGINE": "1",
    "SGLANG_MAMBA_CONV_DTYPE": "float32",
    "OMP_NUM_THREADS": "1",
    "HYPIC_CHECK_OWNERSHIP": "1",  # every test's engine recounts its pools after each change
}
UNWANTED = {"TRITON_INTERPRET", "HYPIC_CONFIG", *CPU}
CPU_FLAGS = ("--max-total-tokens", "16384")
GPU_FLAGS = (
    *("--attention-backend", "triton", "--sampling-backend", "pytorch"),
    *("--grammar-backend", "none", "--max-running-requests", "16"),
)


def environment(*, for_cpu: bool = True) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in UNWANTED}
    return kept | {"HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"} | (CPU if for_cpu else {})


def command(model: Path, port: int, *flags: str, launcher: tuple[str, ...]) -> list[str]:
    return [
        sys.executable,
        *launcher,
        *("--model-path", str(model), "--host", "127.0.0.1"),
        *("--port", str(port), *flags),
    ]


@dataclass
class Engine:
    """One server: its address, and how to ask it."""

    model: Path
    log: Path
    flags: tuple[str, ...] = ("--pic-enable", "--enable-cache-report")
    on_gpu: bool = False
    bare: bool = False
    launcher: tuple[str, ...] = ("-m", "sglang.launch_server")
    start_timeout_s: float = START_TIMEOUT_S
    variables: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        own = () if self.bare else GPU_FLAGS if self.on_gpu else CPU_FLAGS
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command(self.model, self.port, *own, *self.flags, launcher=self.launcher),
                env=environment(for_cpu=not (self.on_gpu or self.bare)) | self.variables,
                cwd=self.log.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + self.start_timeout_s
        while not self._ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise RuntimeError(f"the engine did not start:\n{self.log.read_text()[-4000:]}")
            time.sleep(0.3)
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()

    def restart(self) -> None:
        """End the process and start another one at the same address."""
        self.__exit__()
        self.__enter__()

    def _ready(self) -> bool:
        try:
            return self.get("/pic/ready")["ready"]
        except urllib.error.HTTPError as error:
            return error.code == 404 and self._healthy()  # a server without the plugin
        except (OSError, KeyError):
            return False

    def _healthy(self) -> bool:
        try:
            return self.get("/health") is not None
        except OSError:
            return False

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            body = answer.read().decode()
        return json.loads(body) if body.startswith(("{", "[")) else body

    def post(self, path: str, body: Any, timeout_s: float = 120) -> tuple[int, Any]:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, raw, {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:
                return answer.status, _parsed(answer.read().decode())
        except urllib.error.HTTPError as error:
            return error.code, _parsed(error.read().decode())

    def generate(self, prompt: str | list[int], *, n_tokens: int = 8, **fields: Any) -> Any:
        custom = fields.pop("pic", None)
        sampling: dict[str, Any] = {"temperature": 0, "max_new_tokens": n_tokens}
        if custom is not None:
            sampling["custom_params"] = {"pic": custom}
        key = "text" if isinstance(prompt, str) else "input_ids"
        status, answer = self.post(
            "/generate", {key: prompt, "sampling_params": sampling, **fields}
        )
        assert status == 200, answer
        return answer

    def pieces(self, path: str, body: Any, timeout_s: float = 120) -> list[Any]:
        """The events of a streamed answer, without the last one, which says that it is whole."""
        *events, last = self.events(path, body, timeout_s)
        assert last == "[DONE]"
        return [json.loads(event) for event in events]

    def events(self, path: str, body: Any, timeout_s: float = 120) -> Iterator[str]:
        """The events of a streamed answer, as they come."""
        raw = json.dumps(body | {"stream": True}).encode()
        request = urllib.request.Request(self.url + path, raw, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            for line in answer:
                if line.startswith(b"data: "):
                    yield line.decode().strip().removeprefix("data: ")

    @property
    def info(self) -> dict[str, Any]:
        """What the scheduler says of itself."""
        return self.get("/pic/info")["engine"]

    def flush(self) -> None:
        deadline = time.monotonic() + 30
        while self.post("/flush_cache", b"")[0] != 200:
            assert time.monotonic() < deadline, "the cache could not be flushed"
            time.sleep(0.1)


@contextlib.contextmanager
def together(*engines: Engine) -> Iterator[None]:
    """The engines, started and stopped side by side; how long each took to start is printed."""

    def start(engine: Engine) -> None:
        began = time.monotonic()
        engine.__enter__()
        print(f"{engine.log.name}: started in {time.monotonic() - began:.0f} s")

    def stop(engine: Engine) -> None:
        if engine.process is not None:
            engine.__exit__()

    with concurrent.futures.ThreadPoolExecutor(len(engines)) as threads:
        try:
            for started in [threads.submit(start, engine) for engine in engines]:
                started.result()
            yield
        finally:
            list(threads.map(stop, engines))


def _parsed(body: str) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body
