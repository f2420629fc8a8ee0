"""What all models of the resource have in common.

Knows no field of it.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

PullPolicy = Literal["Always", "IfNotPresent", "Never"]
Fields = Mapping[str, Any]


class Frozen(BaseModel):
    """Immutable, camelCase on the wire; unknown fields are somebody else's."""

    model_config = ConfigDict(
        frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore"
    )
