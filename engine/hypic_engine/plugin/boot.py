"""A token on ``ServerArgs`` that loads the plugins in every process that unpickles it.

SGLang 0.5.14 loads plugins in the main process and in schedulers, but not in the detokenizer or in
extra HTTP workers; all of them receive the pickled ``ServerArgs``.
"""

from collections.abc import Callable
from typing import Any


class Token:
    """Pickles to a call of `_load`."""

    def __reduce__(self) -> tuple[Callable[[], "Token"], tuple[()]]:
        return _load, ()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Token":
        return self


def _load() -> Token:
    from sglang.srt.plugins import load_plugins  # noqa: PLC0415 - SGLang may not be there yet

    load_plugins()
    return Token()
