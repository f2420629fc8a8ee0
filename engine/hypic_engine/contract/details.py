"""What an answer tells about its prompt and the cache: ``meta_info.pic`` and ``usage.pic``.

Counts tokens and segments of one prompt, or of a batch. Does not measure.
"""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Details:
    """Tokens and segments by what became of them.

    Attributes:
        found: tokens of segments or of a prefix that were cached before the request came.
        reused: of these, tokens that were not computed again; always ``cached_tokens``.
        recomputed: of these, tokens of seams, computed again in place.
        moved: tokens copied to their true position, whether found or filled for this request.
        radix: tokens of reused that were a prefix in SGLang's tree, and no segments.
        hit: segments that were cached.
        filled: segments computed alone for this request, by it or another in flight.
        in_place: segments computed with what comes before them, and not stored.
        fill_ms: how long the prompt waited for its segments.
        assemble_ms: from the start of its prefill to its first token.
    """

    found: int = 0
    reused: int = 0
    recomputed: int = 0
    moved: int = 0
    radix: int = 0
    hit: int = 0
    filled: int = 0
    in_place: int = 0
    fill_ms: float = 0.0
    assemble_ms: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """As it is sent."""
        fields = asdict(self)
        segments = {name: fields.pop(name) for name in ("hit", "filled", "in_place")}
        return {**fields, "segments": segments}


def of_batch(sent: list[dict[str, Any]]) -> dict[str, Any]:
    """The details of several prompts as one: counts are added, times are those of the slowest."""
    together: dict[str, Any] = Details().to_json()
    for details in sent:
        for name, value in details.items():
            if isinstance(value, dict):
                for kind, n in value.items():
                    together[name][kind] += n
            elif name.endswith("_ms"):
                together[name] = max(together[name], value)
            else:
                together[name] += value
    return together
