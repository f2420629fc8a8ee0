"""How hooks get into SGLang, and which SGLang they fit.

SGLang itself only logs a hook that failed and would serve wrong answers with half of them; here
that ends the process. Knows no hook.
"""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ..errors import HostError

CHECKED_VERSION = "0.5.14"
_SRT = "sglang.srt."


@dataclass(frozen=True, slots=True)
class Hook:
    """One place: dotted path below ``sglang.srt``, how, what is called, and why."""

    target: str
    kind: str
    function: Callable[..., Any]
    why: str


def host_problem() -> str | None:
    """Why the SGLang found here cannot be extended, or None."""
    try:
        found = version("sglang")
    except PackageNotFoundError:
        return "SGLang is not installed"
    if found != CHECKED_VERSION:
        return f"SGLang {found} is not known to this plugin; it works with {CHECKED_VERSION}"
    return None


def register_cache(name: str, factory: Callable[[Any], Any]) -> None:
    """Make our cache selectable as ``--radix-cache-backend``."""
    from sglang.srt.mem_cache import registry  # noqa: PLC0415

    if name not in registry.registered_radix_cache_backends():
        registry.register_radix_cache_backend(name, factory)


def install(hooks: Iterable[Hook]) -> None:
    """Register and apply hooks, and make sure that each one took.

    Raises:
        SystemExit: one did not; not an Exception, which SGLang's loader would swallow.
    """
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType  # noqa: PLC0415

    targets = []
    for hook in hooks:
        targets.append(_SRT + hook.target)
        HookRegistry.register(targets[-1], hook.function, HookType[hook.kind])
    HookRegistry.apply_hooks()
    missing = [target for target in targets if target not in HookRegistry._patched]  # noqa: SLF001
    if missing:
        error = HostError(f"SGLang {CHECKED_VERSION} was expected to have {', '.join(missing)}")
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(2)
