"""Which headers go through the router, either way, and errors that clients can read.

Names are compared without case and passed on as they came.
"""

from collections.abc import Sequence
from http import HTTPStatus

from .sse import error_body

Pairs = Sequence[tuple[str, str]]

# Those that belong to one connection, and those that each side makes for itself.
HOP = frozenset(
    (
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)
REQUEST_ONLY = frozenset(("host", "content-length", "expect", "x-request-id", "x-hypic-explain"))
ANSWER_ONLY = frozenset(("content-length", "date", "server", "x-request-id", "x-hypic-draining"))
WORDS = 500


def for_engine(pairs: Pairs, *, request_id: str, stream: bool) -> list[tuple[str, str]]:
    """The client's headers for an engine.

    A stream is asked for uncompressed, so that an error can be written into it.
    """
    encoding = ("accept-encoding",) if stream else ()
    dropped = HOP | REQUEST_ONLY | _of_connection(pairs) | frozenset(encoding)
    kept = [(name, value) for name, value in pairs if name.lower() not in dropped]
    return [*kept, *((name, "identity") for name in encoding), ("x-request-id", request_id)]


def for_client(pairs: Pairs) -> list[tuple[str, str]]:
    """An engine's headers for the client."""
    dropped = HOP | ANSWER_ONLY | _of_connection(pairs)
    return [(name, value) for name, value in pairs if name.lower() not in dropped]


def _of_connection(pairs: Pairs) -> frozenset[str]:
    """Headers that the sender says belong to its connection."""
    values = (value for name, value in pairs if name.lower() == "connection")
    return frozenset(name.strip().lower() for value in values for name in value.split(","))


def readable(
    status: int, pairs: Sequence[tuple[str, str]], data: bytes
) -> tuple[bytes, list[tuple[str, str]]]:
    """An engine's error that is not JSON, as JSON; everything else as it is."""
    names = {name.lower(): value for name, value in pairs}
    as_it_is = "json" in names.get("content-type", "") or "content-encoding" in names
    if status < HTTPStatus.BAD_REQUEST or as_it_is:
        return data, list(pairs)
    words = data[:WORDS].decode("utf-8", "replace").strip() or f"the engine answered {status}"
    ours = status < HTTPStatus.INTERNAL_SERVER_ERROR
    kind = "invalid_request_error" if ours else "server_error"
    kept = [(name, value) for name, value in pairs if name.lower() != "content-type"]
    body = error_body(words, kind=kind, param=None, code="engine_error")
    return body, [*kept, ("Content-Type", "application/json")]
