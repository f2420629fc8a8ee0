import os
import subprocess
from pathlib import Path

from local.settings import REPOSITORY

PYTHON = """\
#!/bin/sh
test -e installed || { echo ensurepip is not available; exit 1; }
mkdir -p .venv/bin && touch .venv/bin/pip
"""
APT_GET = """\
#!/bin/sh
test "$*" != "install -y python3-venv" || touch installed
"""


def make(*words: str, cwd: Path = REPOSITORY, path: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--file", str(REPOSITORY / "Makefile"), *words],
        cwd=cwd,
        env={"PATH": f"{path}:{os.environ['PATH']}", "HOME": str(cwd)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_demo_needs_no_developers_environment() -> None:
    assert make("--dry-run", "demo").stdout == "python3 -m local demo\n"


def test_the_environment_is_made_where_debian_split_pip_from_python(tmp_path: Path) -> None:
    for name, text in {"python3": PYTHON, "apt-get": APT_GET}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    done = make(".venv/bin/pip", cwd=tmp_path, path=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / ".venv" / "bin" / "pip").exists()
