"""`hypic_engine.Engine`: in the process of its user, no server."""

import subprocess
import sys
from pathlib import Path

from ...support.engine_server import environment

ROOT = Path(__file__).parents[3]

REFUSALS = """
from hypic_engine import Engine
from hypic_engine.errors import SettingsError

for kwargs in (
    {"pic_mode": "best"},
    {"pic_modes": "addition"},
    {"pic_seam": -1},
    {"page_size": 16},
):
    try:
        Engine(model_path="nowhere", pic_enable=True, **kwargs)
    except SettingsError as error:
        print(error)
"""


def run(*words):
    return subprocess.run(
        [sys.executable, *map(str, words)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_quick_start_finds_both_documents_and_prints_what_its_readme_shows(tiny):
    ended = run(ROOT / "examples" / "quick_start.py", tiny)
    assert ended.returncode == 0, ended.stderr[-4000:]
    shown = (ROOT / "examples" / "README.md").read_text()
    lines = [line for line in ended.stdout.splitlines() if "came from the cache" in line]
    assert "\n".join(lines) in shown
    assert len(lines) == 4


def test_what_cannot_work_is_an_exception_that_names_the_flags():
    ended = run("-c", REFUSALS)
    assert ended.returncode == 0, ended.stderr[-4000:]
    mode, unknown, seam, page = ended.stdout.splitlines()
    assert "--pic-mode" in mode
    assert "'transition_rope_recompute'" in mode
    assert unknown == "--pic-modes=addition is no flag of this plugin"
    assert seam == "--pic-seam -1 must be between 0 and 4096"
    assert page == "--page-size 16 cannot be combined with --pic-enable; use --page-size 1"


def test_importing_the_package_loads_nothing_of_the_host():
    loaded = run(
        "-c", "import sys, hypic_engine; print('torch' in sys.modules, 'sglang' in sys.modules)"
    )
    assert loaded.stdout == "False False\n"
