"""A kube-apiserver with its etcd, for tests: admission, CEL, server-side apply, no controllers.

Plays neither kubelet nor controller manager; tests write the status that those would write.
"""

import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
PORTS = range(17_000, 17_100)
START_WITHIN_S = 60.0
ADMIN = "admin"
OPERATOR = "hypic-operator"
AUTHOR = "author"


# What the operator asks for is written down, in the metadata's detail.
AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "rules": [
        {"level": "Metadata", "users": [OPERATOR], "omitStages": ["RequestReceived"]},
        {"level": "None"},
    ],
}


class MissingToolError(Exception):
    """A binary that a tier needs cannot be had; the message says where it was looked for."""


def tool(name: str) -> Path:
    """Path of a Kubernetes binary: from KUBEBUILDER_ASSETS, else built by the local tool."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and (path := Path(assets) / name).exists():
        return path
    command = [sys.executable, "-m", "local", "tool", name]
    answer = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    path = Path(answer.stdout.strip() or "missing")
    if answer.returncode != 0 or not path.exists():
        looked = f"KUBEBUILDER_ASSETS={assets or 'unset'} and `{' '.join(command[1:])}`"
        raise MissingToolError(f"{name}: not found in {looked}: {answer.stderr.strip()[-400:]}")
    return path


def free_ports(count: int) -> list[int]:
    """Ports of the tests' own range that nobody listens on."""
    found: list[int] = []
    # Each process begins somewhere else, so that two that start together do not meet.
    begin = os.getpid() * 7 % len(PORTS)
    for port in (*PORTS[begin:], *PORTS[:begin]):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                found.append(port)
        if len(found) == count:
            return found
    raise MissingToolError(f"no {count} free ports in {PORTS.start}-{PORTS.stop - 1}")


class Part:
    """One process of the API server, which tests may kill, start again or hold still."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._command = command
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(self._command, stdout=output, stderr=output)

    @property
    def ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def end(self) -> None:
        """Stop it, if it has not ended by itself."""
        if not self.ended:
            self.send(signal.SIGTERM)
        if self._process is not None:
            self._process.wait(30)


@dataclass(frozen=True, slots=True)
class ApiServer:
    """A running kube-apiserver, and the smallest client that tests need."""

    url: str
    folder: Path
    etcd: Part
    apiserver: Part

    @property
    def ca_file(self) -> Path:
        """Certificate that the server shows."""
        return self.folder / "serving.crt"

    def audited(self) -> list[dict[str, Any]]:
        """Every request of the operator's user that was answered, in order."""
        lines = (self.folder / "audit.log").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """A file for other programs that reach the server as this user."""
        config = _kubeconfig(self.url, self.ca_file.read_bytes(), user)
        path = self.folder / f"{user}-{self.url.rpartition(':')[2]}.kubeconfig"
        if not path.exists():  # somebody may be reading it
            path.write_text(json.dumps(config))
        return path

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        user: str = ADMIN,
    ) -> tuple[int, Any]:
        """Status and JSON of one request."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {_token(user)}", "Content-Type": content_type}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        context = ssl.create_default_context(cafile=str(self.ca_file))
        try:
            with urllib.request.urlopen(request, timeout=30, context=context) as answer:
                raw, status = answer.read(), answer.status
        except urllib.error.HTTPError as error:
            with error:
                raw, status = error.read(), error.code
        return status, json.loads(raw) if raw[:1] == b"{" else raw.decode()

    def wait_until_up(self) -> None:
        """Wait until it answers, after a start."""
        deadline = time.monotonic() + START_WITHIN_S
        while time.monotonic() < deadline:
            if self.etcd.ended or self.apiserver.ended:
                raise MissingToolError(f"a part ended: {_tails(self.folder)}")
            with contextlib.suppress(OSError):
                if self.request("GET", "/readyz")[0] == 200:
                    return
            time.sleep(0.1)
        raise MissingToolError(f"not ready in {START_WITHIN_S} s: {_tails(self.folder)}")


def _tails(folder: Path) -> str:
    return "\n".join(f"{log.name}: {log.read_text()[-1500:]}" for log in folder.glob("*.log"))


def _certificates(folder: Path) -> None:
    """A self-signed serving certificate and a key for service account tokens."""
    openssl = shutil.which("openssl")
    if openssl is None:
        raise MissingToolError("openssl: not on PATH; install the package openssl")
    serving = ["-x509", "-subj", "/CN=tests", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = [openssl, "req", "-newkey", "rsa:2048", "-nodes", "-days", "2", *serving]
    files = ["-keyout", f"{folder}/serving.key", "-out", f"{folder}/serving.crt"]
    subprocess.run([*command, *files], check=True, capture_output=True)
    account = [openssl, "genrsa", "-out", f"{folder}/accounts.key", "2048"]
    subprocess.run(account, check=True, capture_output=True)


def _token(user: str) -> str:
    return f"token-of-{user}"


def _kubeconfig(url: str, ca: bytes, user: str) -> dict[str, Any]:
    cluster = {"server": url, "certificate-authority-data": base64.b64encode(ca).decode()}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tests", "cluster": cluster}],
        "users": [{"name": user, "user": {"token": _token(user)}}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": user}}],
        "current-context": "tests",
    }


def _etcd(folder: Path, client_port: int, peer_port: int) -> list[str]:
    client, peer = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
    return [
        str(tool("etcd")),
        f"--data-dir={folder}/etcd",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=error",
    ]


def _kube_apiserver(folder: Path, port: int, etcd_port: int) -> list[str]:
    return [
        str(tool("kube-apiserver")),
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={folder}/serving.crt",
        f"--tls-private-key-file={folder}/serving.key",
        f"--token-auth-file={folder}/tokens.csv",
        f"--service-account-key-file={folder}/accounts.key",
        f"--service-account-signing-key-file={folder}/accounts.key",
        "--service-account-issuer=https://tests",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount",
        f"--audit-policy-file={folder}/audit.json",
        f"--audit-log-path={folder}/audit.log",
    ]


@contextlib.contextmanager
def running() -> Iterator[ApiServer]:
    """A fresh API server in a folder of its own; stopped, by process id, at the end."""
    etcd_port, peer_port, port = free_ports(3)
    with tempfile.TemporaryDirectory(prefix="hypic-apiserver-") as name:
        folder = Path(name)
        _certificates(folder)
        (folder / "tokens.csv").write_text(
            f'{_token(ADMIN)},{ADMIN},{ADMIN},"system:masters"\n'
            f"{_token(OPERATOR)},{OPERATOR},{OPERATOR}\n"
            f"{_token(AUTHOR)},{AUTHOR},{AUTHOR}\n"
        )
        (folder / "audit.json").write_text(json.dumps(AUDIT))
        etcd = Part(_etcd(folder, etcd_port, peer_port), folder / "etcd.log")
        serving = Part(_kube_apiserver(folder, port, etcd_port), folder / "kube-apiserver.log")
        server = ApiServer(f"https://127.0.0.1:{port}", folder, etcd, serving)
        try:
            etcd.start()
            serving.start()
            server.wait_until_up()
            yield server
        finally:
            serving.end()
            etcd.end()
