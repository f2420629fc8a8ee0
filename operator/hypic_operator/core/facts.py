"""What a status is made of, and the form of its conditions.

Decides nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from . import names, serving
from .api import HypicCluster
from .observed import Observed
from .plan import Blocked, Plan
from .refusals import Refusal

ConditionType = Literal[
    "Ready",
    "Progressing",
    "ModelReady",
    "PrefillReady",
    "DecodeReady",
    "RouterReady",
    "Serving",
]
State = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition, without the times that the API wants beside it."""

    type: ConditionType
    status: State
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a status is made of.

    Attributes:
        cluster: the resource, with its last status.
        observed: what runs.
        plan: what is being done.
        refusal: what the spec must change.
        record: answers to requests for a token.
        blocked: what the API server refused to let be written.
    """

    cluster: HypicCluster
    observed: Observed
    plan: Plan
    refusal: Refusal | None
    record: serving.Record
    blocked: Blocked | None = None

    def blocked_in(self, component: names.Component) -> Blocked | None:
        """What cannot be written of one component."""
        blocked = self.blocked
        return blocked if blocked is not None and blocked.component == component else None


def before(cluster: HypicCluster, kind: str) -> Mapping[str, Any]:
    """A condition as it was written last; empty for none."""
    items: Sequence[Mapping[str, Any]] = cluster.status.get("conditions", ())
    return next((item for item in items if item["type"] == kind), {})
