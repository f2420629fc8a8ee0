"""Position-independent caching for hybrid-attention models. Importing this changes nothing."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .plugin.engine import Engine

__all__ = ["Engine"]


def __getattr__(name: str) -> Any:
    """``Engine``, and with it SGLang, only when it is asked for."""
    if name != "Engine":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .plugin.engine import Engine  # noqa: PLC0415

    return Engine
