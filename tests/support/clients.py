"""Clients that tests point at the router, in the cache folder, pinned by the locks beside them.

    python -m tests.support.clients      installs what is missing

OpenAI's Node SDK and a driver for Debian's Chromium by npm; LangChain and Schemathesis by pip, in
an environment of their own, since they bring much that the developers' tools do not need.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "clients"
LOCKS = ("package.json", "package-lock.json", "requirements.txt")
CHROMIUM = "chromium"


def folder() -> Path:
    """Where the clients of these very locks are."""
    sha = hashlib.sha256(b"".join((SOURCE / name).read_bytes() for name in LOCKS))
    cache = os.environ.get("HYPIC_CACHE") or Path.home() / ".cache" / "hypic"
    return Path(cache) / f"clients-{sha.hexdigest()[:12]}"


def python() -> str:
    return str(folder() / "python" / "bin" / "python")


def run(command: list[str], *, timeout_s: float = 120, at: Path | None = None) -> str:
    """What a client printed; fails with all it said when it fails."""
    assert (folder() / "done").exists(), "no clients here: run `make clients`"
    env = {**os.environ, "CLIENTS": str(folder()), "NO_PROXY": "*"}
    done = subprocess.run(
        command, env=env, cwd=at, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout


def script(name: str) -> str:
    return str(SOURCE / name)


def install() -> None:
    if shutil.which(CHROMIUM) is None:
        subprocess.run(["apt-get", "update", "-q"], check=True)
        subprocess.run(
            ["apt-get", "install", "-y", "-q", "--no-install-recommends", CHROMIUM], check=True
        )
    target = folder()
    if (target / "done").exists():
        return
    target.mkdir(parents=True, exist_ok=True)
    for name in LOCKS:
        shutil.copy(SOURCE / name, target)
    npm = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]
    subprocess.run(npm, cwd=target, check=True)
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "-q", "--clear", str(target / "python")], check=True)
    locked = ["--python", python(), "--require-hashes", "-r", str(target / "requirements.txt")]
    subprocess.run([*uv, "pip", "install", "-q", *locked], check=True)
    (target / "done").touch()


if __name__ == "__main__":
    install()
