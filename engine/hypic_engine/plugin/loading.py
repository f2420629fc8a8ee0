"""How much of a model's weights a starting engine has read.

Counted in the scheduler's process, where SGLang reads them, and left in a file of the engine's own
folder for the process that answers HTTP. Neither changes what is read nor in what order.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

_FILE = "weights"
_ALL_PERCENT = 100


class Weights:
    """What one scheduler process has read so far.

    Args:
        folder: the engine's own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sizes: dict[str, int] = {}
        self._read_bytes = 0
        self._told_percent = -1

    def learn(self, found: Any, *_: object, **__: object) -> None:
        """After ``DefaultModelLoader._prepare_weights``: the sizes of the files to come."""
        with suppress(OSError):
            self._sizes |= {path: Path(path).stat().st_size for path in found[1]}
        self._tell()

    def count(self, original: Callable[..., Iterator[Any]], *args: Any, **kwargs: Any) -> Any:
        """Around ``DefaultModelLoader._get_weights_iterator``: each tensor once it is taken."""
        # Files that are not there must be missed now, as without us: SGLang answers for that here.
        return self._counted(original(*args, **kwargs))

    def _counted(self, weights: Iterator[Any]) -> Iterator[Any]:
        for name, tensor in weights:
            n_bytes = tensor.nbytes
            yield name, tensor
            self._read_bytes += n_bytes
            self._tell()
        # Files are a little larger than what is taken out of them.
        self._read_bytes = self._n_bytes
        self._tell()

    @property
    def _n_bytes(self) -> int:
        return sum(self._sizes.values())

    def _tell(self) -> None:
        percent = min(_ALL_PERCENT, self._read_bytes * _ALL_PERCENT // max(1, self._n_bytes))
        if percent != self._told_percent:
            self._told_percent = percent
            with suppress(OSError):  # nobody is told, and the model is loaded all the same
                tell(self._folder, percent)


def tell(folder: Path, percent: int) -> None:
    """Leave the number for whoever asks."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = folder / f"{_FILE}.{os.getpid()}"
    fresh.write_text(str(percent))
    fresh.replace(folder / _FILE)


def told(folder: Path) -> int | None:
    """The share of the weights that is read, 0 to 100; None before the first was looked for."""
    try:
        return int((folder / _FILE).read_text())
    except (OSError, ValueError):
        return None
