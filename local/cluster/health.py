"""Asks a part whether it is well; changes nothing."""

import http.client
import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

TIMEOUT_S = 2.0


def answers(url: str, *, pki: Path) -> bool:
    """Whether an http, https or unix URL of a part answers well.

    Certificates of controllers and scheduler are made by themselves, so servers are not verified:
    the question goes to addresses of this machine and carries nothing secret.
    """
    parts = urlsplit(url)
    try:
        if parts.scheme == "unix":
            return _accepts(parts.path)
        return _get(parts.scheme, parts.hostname or "", parts.port or 0, parts.path, pki=pki)
    except (OSError, http.client.HTTPException):
        return False


def _accepts(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(TIMEOUT_S)
        probe.connect(path)
    return True


def _get(scheme: str, host: str, port: int, path: str, *, pki: Path) -> bool:
    if scheme == "http":
        connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    else:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        client = "etcd" if port == 2379 else "admin"  # noqa: PLR2004 - the store's own authority
        context.load_cert_chain(pki / f"{client}.crt", pki / f"{client}.key")
        connection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    finally:
        connection.close()
