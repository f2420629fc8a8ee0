"""The families of linear attention that can be cached, by the architectures that use them.

Facts alone: neither torch nor SGLang. What a family computes is in `runner`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Family:
    """What differs between families before any tensor exists.

    Attributes:
        name: how states evolve.
        architectures: as a model's ``config.json`` names them.
        stores_transitions: whether a segment's transition is a matrix, not a known number.
        prefix_cache_is_exact: whether SGLang 0.5.14's own prefix cache gives this family the tokens
            of a cold prompt. Lightning's backend never copies a cached state to the request that
            hits it, and keeps states of the wrong position (``LightningAttentionBackend``).
    """

    name: Literal["gdn", "lightning"]
    architectures: frozenset[str]
    stores_transitions: bool
    prefix_cache_is_exact: bool


RING = frozenset({"BailingMoeLinearForCausalLM", "BailingMoeLinearV2ForCausalLM"})
"""Architectures that this package adds to SGLang."""

GDN = Family(
    "gdn",
    frozenset(
        {
            "Qwen3NextForCausalLM",
            "Qwen3_5ForCausalLM",
            "Qwen3_5ForConditionalGeneration",
            "Qwen3_5MoeForCausalLM",
            "Qwen3_5MoeForConditionalGeneration",
        }
    ),
    stores_transitions=True,
    prefix_cache_is_exact=True,
)
LIGHTNING = Family(
    "lightning",
    RING | {"BailingMoeV2_5ForCausalLM"},
    stores_transitions=False,
    prefix_cache_is_exact=False,
)
ALL = (GDN, LIGHTNING)


def of(architectures: Iterable[str]) -> Family | None:
    """The family of a model, or None when it is of none."""
    named = frozenset(architectures)
    return next((family for family in ALL if named & family.architectures), None)
