"""Short answers of the routes under ``/pic``, and the body of what was asked.

Knows no route.
"""

import json
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from ...errors import RequestError

STARTING = "the scheduler has not started yet"


def raw(body: bytes, status: int = 200) -> Response:
    """A body that is JSON already."""
    return Response(body, status_code=status, media_type="application/json")


def json_of(body: dict[str, Any], status: int = 200) -> Response:
    """An object."""
    return raw(json.dumps(body).encode(), status)


def ready() -> Response:
    """The engine takes requests."""
    return json_of({"ready": True})


def unready(reason: str) -> Response:
    """What keeps the engine from being ready."""
    return json_of({"ready": False, "reason": reason}, 503)


def bad(error: Exception) -> Response:
    """What is wrong with a request: the field and its limit."""
    return json_of({"error": str(error)}, 400)


def off() -> Response:
    """Nothing is cached here."""
    reason = "segments are cached with --pic-enable, on servers that prefill"
    return json_of({"error": f"no segments are cached here: {reason}"}, 404)


async def fields_of(request: Request) -> Any:
    """The JSON body.

    Raises:
        RequestError: it is none.
    """
    try:
        return json.loads(await request.body())
    except ValueError:
        raise RequestError("body", "must be JSON") from None
