"""Engine against oracle: every family and mode, one engine each; `make oracle`.

    python -m tests.integration.engine.oracle_run [FAMILY ...]

Prints a line an engine and the sum last; exits with 1 when any answer differs.
"""

import concurrent.futures
import multiprocessing
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ...support.engine_server import Engine
from ...support.oracle import Mode
from .oracle_cases import Case, answers, cases, wanted_of

SCRIPT = Path(__file__).parents[3] / "examples" / "tiny_model.py"
DEFAULT: Mode = "transition_rope_recompute"
OTHERS: tuple[Mode, ...] = ("addition", "transition", "transition_rope")
MODES = {
    "qwen3.5": (DEFAULT, *OTHERS),
    "qwen3-next": (DEFAULT,),
    "ring": (DEFAULT, *OTHERS),
    "bailing-v2.5": (DEFAULT,),
}
N_CASES = {DEFAULT: 60}
N_CASES_OTHERS = 48
MEMORY = ("--pic-memory-gib", "0.1", "--mem-fraction-static", "0.5")
START_TIMEOUT_S = 600


def compare(
    family: str, mode: Mode, folder: Path, work: Path, pool: concurrent.futures.Executor
) -> tuple[int, list[Case]]:
    """Cases asked of one engine, and those that it answered otherwise than the oracle."""
    drawn = cases(seed=sum(f"{family}{mode}".encode()), n_cases=N_CASES.get(mode, N_CASES_OTHERS))
    wanted = [pool.submit(wanted_of, folder, case, mode) for case in drawn]
    flags = ("--pic-enable", "--pic-mode", mode, *MEMORY)
    started = time.monotonic()
    log = work / f"{family}-{mode}.log"
    with Engine(folder, log, flags=flags, start_timeout_s=START_TIMEOUT_S) as engine:
        got = answers(engine, drawn)
        assert "memory leak" not in engine.log.read_text()
    pairs = zip(drawn, got, wanted, strict=True)
    differ = [case for case, answer, want in pairs if answer != want.result()]
    seconds = time.monotonic() - started
    print(f"{family} {mode}: {len(drawn)} cases, {len(differ)} mismatches, {seconds:.0f} s")
    return len(drawn), differ


def main(families: list[str]) -> int:
    n_cases, differ = 0, []
    spawn = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as name,
        concurrent.futures.ProcessPoolExecutor(2, mp_context=spawn) as pool,
    ):
        for family in families or MODES:
            folder = Path(name) / family
            subprocess.run([sys.executable, SCRIPT, folder, "--family", family], check=True)
            for mode in MODES[family]:
                n_more, more = compare(family, mode, folder, Path(name), pool)
                n_cases += n_more
                differ += more
    for case in differ[:10]:
        print(f"mismatch: {case}")
    print(f"oracle: {n_cases} cases, {len(differ)} mismatches")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(main(sys.argv[1:]))
