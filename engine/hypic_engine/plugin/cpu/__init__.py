"""Run SGLang's hybrid models on a machine without an accelerator.

Decides whether that is wanted, sets the environment that a small machine needs, and puts plain
torch in place of the compiled kernels that SGLang 0.5.14 lacks on CPUs. Same server, scheduler and
caches; only speed differs.
"""

import os
import sys
from collections.abc import Mapping

ENGINE_VARIABLE = "SGLANG_USE_CPU_ENGINE"

# One thread per process leaves small machines responsive; float32 convolution states keep a hit
# and a miss on the same numbers.
ENVIRONMENT: Mapping[str, str] = {
    ENGINE_VARIABLE: "1",
    "OMP_NUM_THREADS": "1",
    "SGLANG_MAMBA_CONV_DTYPE": "float32",
    "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "false",
}


def wanted() -> bool:
    """Whether to run on the CPU: it was asked for, or there is nothing else."""
    asked = os.environ.get(ENGINE_VARIABLE)
    if asked is not None:
        return asked == "1"
    import torch  # noqa: PLC0415 - SGLang has imported it already

    return not torch.cuda.is_available()


def prepare() -> None:
    """Set the environment and install the stand-ins.

    SGLang decides for the CPU while it is imported, which has happened when it loads plugins; so a
    launch without the variable starts over once, with it.
    """
    if os.environ.get(ENGINE_VARIABLE) != "1":
        os.environ.update({k: v for k, v in ENVIRONMENT.items() if k not in os.environ})
        if any("launch_server" in word for word in sys.orig_argv):
            sys.stderr.write(
                f"hypic: no accelerator found; starting again with {ENGINE_VARIABLE}=1 "
                "(set it to save these seconds)\n"
            )
            sys.stderr.flush()
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from . import standins  # noqa: PLC0415 - needs torch and SGLang

    standins.install()


def complete_bailing() -> None:
    """What Bailing and Ring models need beyond that, once SGLang has imported their module."""
    from . import bailing  # noqa: PLC0415 - imports that module

    bailing.install()
