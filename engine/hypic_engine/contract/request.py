"""What a request may say about segments: ``sampling_params.custom_params.pic``.

Validates and names the field at fault; does not look at tokens or the cache.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import RequestError

FIELD = "custom_params.pic"
KNOWN = frozenset({"segment_ends", "recompute", "enabled"})


@dataclass(frozen=True, slots=True)
class SegmentOptions:
    """A client's wishes for one request.

    Attributes:
        enabled: whether this request may read and fill segments.
        segment_ends: increasing token offsets at which segments end; the rest is the query.
            ``None`` when the client gave none.
        recompute: indices of segments to compute in place, 0 is the head; or all of them.
    """

    enabled: bool = True
    segment_ends: tuple[int, ...] | None = None
    recompute: frozenset[int] | Literal["all"] = frozenset()

    def recomputes(self, segment: int) -> bool:
        """Whether the segment with this index is to be computed in place."""
        return self.recompute == "all" or segment in self.recompute


def _int_list(name: str, value: object, limit: int) -> tuple[int, ...]:
    field = f"{FIELD}.{name}"
    if not isinstance(value, list):
        raise RequestError(field, f"must be a list of integers, got {type(value).__name__}")
    if len(value) > limit:
        raise RequestError(field, f"holds {len(value)} segments; at most {limit} are allowed")
    if any(isinstance(item, bool) or not isinstance(item, int) or item < 0 for item in value):
        raise RequestError(field, "must hold integers that are 0 or more")
    return tuple(value)


def options(custom_params: object, *, max_segments: int) -> SegmentOptions:
    """The options in a request's ``custom_params``.

    Args:
        custom_params: the value as sent: an object or nothing.
        max_segments: most segments a prompt may have.

    Raises:
        RequestError: a field is unknown, of the wrong type or past its limit.
    """
    if not isinstance(custom_params, Mapping) or custom_params.get("pic") is None:
        return SegmentOptions()
    pic: Any = custom_params["pic"]
    if not isinstance(pic, Mapping):
        raise RequestError(FIELD, f"must be an object, got {type(pic).__name__}")
    unknown = sorted(str(name) for name in set(pic) - KNOWN)
    if unknown:
        raise RequestError(FIELD, f"unknown field {unknown[0]!r}; allowed: {sorted(KNOWN)}")
    enabled = pic.get("enabled", True)
    if not isinstance(enabled, bool):
        raise RequestError(f"{FIELD}.enabled", "must be true or false")
    ends = pic.get("segment_ends")
    parsed_ends = None if ends is None else _int_list("segment_ends", ends, max_segments)
    if parsed_ends is not None and list(parsed_ends) != sorted(set(parsed_ends)):
        raise RequestError(f"{FIELD}.segment_ends", "must be strictly increasing")
    recompute = pic.get("recompute", [])
    if recompute == "all":
        return SegmentOptions(enabled, parsed_ends, "all")
    return SegmentOptions(
        enabled, parsed_ends, frozenset(_int_list("recompute", recompute, max_segments))
    )
