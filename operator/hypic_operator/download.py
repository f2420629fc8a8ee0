"""Downloads a model and says how far it is: runs alone, in a container before the engine's.

A download that broke off is taken up again; one that is complete is left alone, without network.
Until it ends, the engine's port answers 503 with the share that is there, as the engine's own
``GET /pic/ready`` does later. The operator renders this file; it never runs it.
"""

import json
import os
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any


def main() -> None:
    """Download what the environment names, unless it is there."""
    repo, revision = os.environ["HYPIC_REPO"], os.environ["HYPIC_REVISION"]
    folder = Path(os.environ["HYPIC_FOLDER"])
    complete = folder / ".hypic-complete"
    if complete.exists():
        print(f"{repo} is there already", flush=True)
        return
    from huggingface_hub import HfApi, snapshot_download  # noqa: PLC0415 - the engine's image

    print(f"Downloading {repo} at {revision}", flush=True)
    _answer(folder, _size(HfApi(), repo, revision))
    snapshot_download(repo, revision=revision, local_dir=folder)
    complete.touch()
    print(f"{repo} is complete", flush=True)


def _size(hub: Any, repo: str, revision: str) -> int:
    """Bytes of all its files; 0 where the hub does not tell, which is no reason not to try."""
    try:
        found = hub.model_info(repo, revision=revision, files_metadata=True, timeout=10)
        return sum(file.size or 0 for file in found.siblings or ())
    except Exception as error:  # noqa: BLE001 - only how far it is stays unknown
        print(f"The size of {repo} is not known: {error}", flush=True)
        return 0


def _answer(folder: Path, size: int) -> None:
    try:
        server = _Server(("", int(os.environ["HYPIC_PORT"])), partial(_Answer, folder, size))
    except OSError as error:
        print(f"Nobody is told how far it is: {error}", flush=True)
        return
    threading.Thread(target=server.serve_forever, daemon=True).start()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # without a question to the name service, which may be slow

    def handle_error(self, *_: object) -> None:
        """Whoever asked has left."""


class _Answer(BaseHTTPRequestHandler):
    timeout = 1.0

    def __init__(self, folder: Path, size: int, *args: Any) -> None:
        self._folder = folder
        self._size = size
        super().__init__(*args)

    def do_GET(self) -> None:
        body = json.dumps(state(self._folder, self._size)).encode()
        self.send_response(503)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """The operator asks every few seconds."""


def state(folder: Path, size: int) -> dict[str, Any]:
    """What is said: a reason, and the share of the model that is there where its size is known."""
    if not size:
        return {"ready": False, "reason": "the model is being downloaded"}
    percent = min(100, 100 * sum(map(_bytes, folder.rglob("*"))) // size)
    told = {"stage": "download", "percent": percent}
    return {"ready": False, "reason": f"{percent} % of the model is here", "loading": told}


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:  # renamed meanwhile: it counts under its new name next time
        return 0


if __name__ == "__main__":
    main()
