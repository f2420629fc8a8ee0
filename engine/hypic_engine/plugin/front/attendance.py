"""Who is being served by an engine's HTTP processes, and whether anybody new may come.

Kept in files of the engine's own folder: with several HTTP workers each knows only its own
requests, and what one of them is told must hold for all. Refuses nobody; that is `door`.
"""

import itertools
import mmap
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# One worker's line: how many requests are inside, and when the oldest came (CLOCK_MONOTONIC, which
# all processes of a machine share).
_LINE = struct.Struct("<qd")


@dataclass(frozen=True, slots=True)
class Inside:
    """Requests under way in all HTTP processes.

    Attributes:
        n_requests: from their first byte to the last of their answer.
        oldest_s: for how long the oldest has been there; 0 when there is none.
    """

    n_requests: int = 0
    oldest_s: float = 0.0


class Attendance:
    """The requests of one HTTP process among those of all, and the drain they share."""

    def __init__(self, folder: Path) -> None:
        self._lines = folder / "requests"
        self._drain = folder / "drain"
        self._tickets = itertools.count()
        self._came: dict[int, float] = {}
        self._line: mmap.mmap | None = None

    @contextmanager
    def request(self) -> Iterator[None]:
        """One request, for as long as it is served."""
        ticket = next(self._tickets)
        self._came[ticket] = time.monotonic()
        self._write()
        try:
            yield
        finally:
            del self._came[ticket]
            self._write()

    def inside(self) -> Inside:
        """The requests of all HTTP processes that live."""
        lines = [
            _LINE.unpack(path.read_bytes())
            for path in self._lines.glob("*")
            if Path("/proc", path.name).exists()
        ]
        came = [oldest for n_requests, oldest in lines if n_requests]
        oldest_s = time.monotonic() - min(came) if came else 0.0
        return Inside(sum(n_requests for n_requests, _ in lines), oldest_s)

    def drain(self, deadline_s: float) -> None:
        """Nobody new may come; the deadline is for who asked, and only ever comes nearer."""
        left_s = self.drain_left_s
        ends_in_s = deadline_s if left_s is None else min(deadline_s, left_s)
        draft = self._drain.with_suffix(f".{os.getpid()}")
        draft.write_text(str(time.monotonic() + ends_in_s))
        draft.replace(self._drain)

    def resume(self) -> None:
        """Everybody may come again."""
        self._drain.unlink(missing_ok=True)

    @property
    def drain_left_s(self) -> float | None:
        """Seconds to the deadline of a drain, negative once it has passed; None without a drain."""
        try:
            deadline = float(self._drain.read_text())
        except FileNotFoundError:
            return None
        return deadline - time.monotonic()

    def _write(self) -> None:
        if self._line is None:
            self._line = self._own_line()
        oldest = next(iter(self._came.values()), 0.0)
        _LINE.pack_into(self._line, 0, len(self._came), oldest)

    def _own_line(self) -> mmap.mmap:
        self._lines.mkdir(parents=True, exist_ok=True)
        path = self._lines / str(os.getpid())
        path.write_bytes(_LINE.pack(0, 0.0))
        with path.open("r+b") as file:
            return mmap.mmap(file.fileno(), _LINE.size)
