"""Kernels need an accelerator: without one these tests fail, they never skip."""

import sys
from pathlib import Path

import pytest
import torch

POISON_BYTES = 1 << 28
ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "benchmarks")]


@pytest.fixture(autouse=True)
def poisoned_memory():
    """Whatever a kernel allocates next is NaN until it writes there."""
    spoiled = torch.full((POISON_BYTES // 4,), torch.nan, device="cuda")
    torch.cuda.synchronize()
    del spoiled
