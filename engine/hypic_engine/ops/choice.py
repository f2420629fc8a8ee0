"""Whether an operation runs as a kernel or as its reference.

``HYPIC_REFERENCE_OPS=1`` takes the references on an accelerator too: slow, and the quickest way to
learn whether a wrong answer is a kernel's.
"""

import os

from torch import Tensor

_ONLY_REFERENCES = os.environ.get("HYPIC_REFERENCE_OPS") == "1"


def runs_kernel(x: Tensor) -> bool:
    """Whether tensors that lie where `x` does are for the kernel."""
    return x.is_cuda and not _ONLY_REFERENCES
