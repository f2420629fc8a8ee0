"""``python -m tests.audit``: a million random operations on index and pools, each one checked.

Half of them follow a fixed seed, half one that is drawn and printed. Ends with the number of faults
and fails when there is one.
"""

import argparse
import secrets
import sys
import time
import traceback

from .world import World

FIXED_SEED = 20_261_130


def faults(seed: int, n_operations: int) -> int:
    """How many faults show; the first one ends the run, since nothing after it can be trusted."""
    world = World(seed)
    for number in range(n_operations):
        try:
            world.step()
        except Exception:  # noqa: BLE001 - whatever it is, it is a fault
            traceback.print_exc()
            print(f"seed {seed}: fault at operation {number + 1}")
            return 1
    world.recount()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32))
    asked = parser.parse_args()
    began = time.monotonic()
    halves = (asked.operations // 2, asked.operations - asked.operations // 2)
    found = 0
    for seed, n_operations in zip((FIXED_SEED, asked.seed), halves, strict=True):
        print(f"seed {seed}: {n_operations} operations", flush=True)
        found += faults(seed, n_operations)
    print(f"{time.monotonic() - began:.0f} s")
    print(f"audit: {asked.operations} operations, {found} faults")
    return min(found, 1)


if __name__ == "__main__":
    sys.exit(main())
