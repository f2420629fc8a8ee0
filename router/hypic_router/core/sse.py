"""Event streams: what may be passed on, whether they ended as they should, errors in them."""

import json
from dataclasses import dataclass
from http import HTTPStatus

DONE = b"data: [DONE]"
ERROR = b'data: {"error"'
# An event longer than this is passed on in pieces; no client waits for more than it.
LONGEST_HELD_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Tail:
    """Where a stream stands between two pieces of it.

    Attributes:
        held: the beginning of an event; never shown to the client unless it is completed.
        shown: the events that were passed on last.
    """

    held: bytes = b""
    shown: bytes = b""

    @property
    def ended(self) -> bool:
        """Whether the last event was one that ends a stream: the end mark or the engine's error."""
        events = self.shown.rstrip()
        last = events[_end_of_whole_events(events) :]
        return last == DONE or last.startswith(ERROR)


def passed(tail: Tail, chunk: bytes) -> tuple[bytes, Tail]:
    """The complete events in what was held and ``chunk``, and where the stream stands then."""
    data = tail.held + chunk if tail.held else chunk
    if data.endswith(b"\n\n"):
        return data, Tail(b"", data)
    end = _end_of_whole_events(data)
    if end == 0 and len(data) < LONGEST_HELD_BYTES:
        return b"", Tail(data, tail.shown)
    ready = data[:end] if end else data
    return ready, Tail(data[len(ready) :], ready)


def _end_of_whole_events(data: bytes) -> int:
    """Where the last blank line in ``data`` ends; 0 when there is none."""
    newline, pair = data.rfind(b"\n\n"), data.rfind(b"\r\n\r\n")
    return max(newline + 2 if newline >= 0 else 0, pair + 4 if pair >= 0 else 0)


def failed(events: bytes) -> bool:
    """Whether a stream begins with an error that is not the client's."""
    if not events.startswith(ERROR):
        return False
    try:
        error = json.loads(events.split(b"\n", 1)[0].removeprefix(b"data: "))["error"]
        return int(error["code"]) >= HTTPStatus.INTERNAL_SERVER_ERROR
    except (ValueError, KeyError, TypeError):
        return True


def error_event(body: bytes) -> bytes:
    """An error as the last event of a stream; ``body`` is JSON on one line."""
    return b"data: " + body + b"\n\n"


def error_body(message: str, *, kind: str, param: str | None, code: str | None) -> bytes:
    """An error in the shape that OpenAI's clients read."""
    error = {"message": message, "type": kind, "param": param, "code": code}
    return json.dumps({"error": error}, ensure_ascii=False).encode("utf-8", "replace")
