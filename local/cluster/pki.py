"""Makes the keys and certificates of the cluster with openssl, each once and mode 0600."""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..shell import run
from .core import names

DAYS = "3650"


@dataclass(frozen=True, slots=True)
class Certificate:
    """One client or server certificate."""

    name: str
    subject: str
    alternatives: str = ""  # as openssl writes subjectAltName
    authority: str = "ca"


CERTIFICATES = (
    # The store has an authority of its own, so that no other certificate opens it.
    Certificate("etcd", "/CN=etcd", f"IP:{names.LOOPBACK}", "etcd-ca"),
    Certificate(
        "apiserver",
        "/CN=kube-apiserver",
        f"IP:{names.NODE_IP},IP:{names.API_SERVICE_IP},DNS:kubernetes,DNS:kubernetes.default,"
        f"DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.{names.DOMAIN}",
    ),
    Certificate("apiserver-kubelet", "/O=system:masters/CN=kube-apiserver-kubelet-client"),
    Certificate("admin", "/O=system:masters/CN=admin"),
    Certificate("controllers", "/CN=system:kube-controller-manager"),
    Certificate("scheduler", "/CN=system:kube-scheduler"),
    Certificate("proxy", "/CN=system:kube-proxy"),
    Certificate("dns", "/CN=hypic:dns"),
    Certificate(
        "node",
        f"/O=system:nodes/CN=system:node:{names.NODE_NAME}",
        f"DNS:{names.NODE_NAME},IP:{names.NODE_IP}",
    ),
)
KUBECONFIGS = ("admin", "controllers", "scheduler", "proxy", "dns", "node")


def make(folder: Path) -> None:
    """Make whatever is missing under ``folder``."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    previous = os.umask(0o077)
    try:
        for authority in ("ca", "etcd-ca"):
            _authority(folder, authority)
        for certificate in CERTIFICATES:
            _certificate(folder, certificate)
        _signing_key(folder / "service-accounts.key", folder / "service-accounts.pub")
    finally:
        os.umask(previous)


def _key(path: Path) -> None:
    argv = ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
    run([*argv, "-out", path])


def _authority(folder: Path, name: str) -> None:
    key, certificate = folder / f"{name}.key", folder / f"{name}.crt"
    if certificate.exists():
        return
    _key(key)
    argv = ["openssl", "req", "-x509", "-new", "-subj", f"/CN=hypic-local-{name}", "-days", DAYS]
    run([*argv, "-key", key, "-out", certificate])


def _certificate(folder: Path, certificate: Certificate) -> None:
    key, final = folder / f"{certificate.name}.key", folder / f"{certificate.name}.crt"
    if final.exists():
        return
    _key(key)
    ca = folder / certificate.authority
    lines = ["basicConstraints=critical,CA:FALSE", "extendedKeyUsage=serverAuth,clientAuth"]
    if certificate.alternatives:
        lines.append(f"subjectAltName={certificate.alternatives}")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        request, extensions = Path(scratch, "csr"), Path(scratch, "ext")
        extensions.write_text("\n".join(lines) + "\n")
        run(["openssl", "req", "-new", "-key", key, "-subj", certificate.subject, "-out", request])
        made = Path(scratch, "crt")
        signed = ["-CA", f"{ca}.crt", "-CAkey", f"{ca}.key", "-CAcreateserial", "-days", DAYS]
        run(
            [
                "openssl",
                "x509",
                "-req",
                "-in",
                request,
                *signed,
                "-extfile",
                extensions,
                "-out",
                made,
            ]
        )
        made.rename(final)


def _signing_key(key: Path, public: Path) -> None:
    if public.exists():
        return
    _key(key)
    run(["openssl", "pkey", "-in", key, "-pubout", "-out", public])
