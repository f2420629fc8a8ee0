"""How much Python work a call is, whatever the machine: counted, not timed."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(do: Callable[[], object]) -> int:
    """Bytecode instructions that the call executes."""
    n_steps = 0

    def count(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal n_steps
        frame.f_trace_opcodes = True
        n_steps += event == "opcode"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        do()
    finally:
        sys.settrace(before)
    return n_steps
