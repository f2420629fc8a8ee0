"""What a client asked about a prompt's segments, on its way from the frontend to the scheduler.

Travels inside ``custom_params``, checked already; decides nothing.
"""

from dataclasses import dataclass
from typing import Any, Literal

PARAMS = "hypic"


@dataclass(frozen=True, slots=True)
class Asked:
    """The tokenizer process's words about one prompt.

    Attributes:
        ends: token offsets at which segments end.
        digests: request digest of each segment, empty where none is known; the query last.
        recompute: segments to compute in place.
        enabled: whether the request may use segments.
    """

    ends: tuple[int, ...] = ()
    digests: tuple[str, ...] = ()
    recompute: frozenset[int] | Literal["all"] = frozenset()
    enabled: bool = True

    def to_params(self) -> dict[str, Any]:
        """As it travels inside ``custom_params``."""
        recompute = "all" if self.recompute == "all" else sorted(self.recompute)
        return {
            "ends": list(self.ends),
            "digests": list(self.digests),
            "recompute": recompute,
            "enabled": self.enabled,
        }


def asked_of(request: Any) -> Asked:
    """What was asked for ``request``; nothing when the frontend said nothing."""
    params = request.sampling_params.custom_params
    raw = params.get(PARAMS) if isinstance(params, dict) else None
    if raw is None:
        return Asked()
    recompute = raw["recompute"]
    return Asked(
        ends=tuple(raw["ends"]),
        digests=tuple(raw["digests"]),
        recompute="all" if recompute == "all" else frozenset(recompute),
        enabled=raw["enabled"],
    )
