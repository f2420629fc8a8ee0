"""What ``POST /pic/warm`` takes: segments to have ready before anybody asks about them.

Validates and names the field at fault; computes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import RequestError

LONGEST_SALT = 4_096


@dataclass(frozen=True, slots=True)
class Warm:
    """Segments to fill.

    Attributes:
        segments: each as text or as token ids.
        salt: ``cache_salt`` followed by ``extra_key`` of the requests that shall find them.
        wait: whether the answer comes when all are there.
    """

    segments: tuple[str | list[int], ...]
    salt: str = ""
    wait: bool = True


def _segment(value: object, at: int, separator: str) -> str | list[int]:
    field = f"segments[{at}]"
    if isinstance(value, str):
        if not value:
            raise RequestError(field, "is empty")
        if separator in value:
            raise RequestError(field, f"holds the separator {separator}; send its parts instead")
        return value
    ids: Any = value
    if not isinstance(ids, list) or not all(type(token) is int for token in ids):
        raise RequestError(field, "must be text or a list of token ids")
    if not ids:
        raise RequestError(field, "is empty")
    return list(ids)


def warm(fields: object, *, max_segments: int, separator: str) -> Warm:
    """What the body of a request asks for.

    Raises:
        RequestError: a field is unknown, missing, of the wrong type or past its limit.
    """
    if not isinstance(fields, Mapping):
        raise RequestError("body", "must be an object with segments")
    unknown = sorted(str(name) for name in set(fields) - {"segments", "salt", "wait"})
    if unknown:
        raise RequestError(unknown[0], "is unknown; allowed are segments, salt, wait")
    segments = fields.get("segments")
    if not isinstance(segments, list) or not segments:
        raise RequestError("segments", "must be a list of one segment or more")
    if len(segments) > max_segments:
        raise RequestError(
            "segments", f"holds {len(segments)} segments; at most {max_segments} are allowed"
        )
    salt, wait = fields.get("salt", ""), fields.get("wait", True)
    if not isinstance(salt, str) or len(salt) > LONGEST_SALT:
        raise RequestError("salt", f"must be a string of at most {LONGEST_SALT} characters")
    if not isinstance(wait, bool):
        raise RequestError("wait", "must be true or false")
    return Warm(tuple(_segment(s, at, separator) for at, s in enumerate(segments)), salt, wait)
