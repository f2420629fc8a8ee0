"""What a status is made of, and the form of its conditions.

Decides nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from . import names, serving
from .api import HypicCluster, RoleName
from .desired import role
from .loading import Progress
from .observed import Observed
from .plan import Blocked, Plan
from .refusals import Refusal
from .scaling import Decision

ConditionType = Literal[
    "Ready",
    "Progressing",
    "Degraded",
    "ModelReady",
    "PrefillReady",
    "DecodeReady",
    "RouterReady",
    "ScalingReady",
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
        scaling: how many engines a role is to have, where the operator decides it.
        cache: what the engines' caches hold; None while none tells.
        progress: how far engines said they were with the model, by the pod's uid.
        now: the time.
    """

    cluster: HypicCluster
    observed: Observed
    plan: Plan
    refusal: Refusal | None
    record: serving.Record
    blocked: Blocked | None = None
    scaling: Mapping[RoleName, Decision] = field(default_factory=dict)
    cache: Mapping[str, Any] | None = None
    progress: Mapping[str, Progress] = field(default_factory=dict)
    now: datetime = field(kw_only=True)

    @property
    def asleep(self) -> bool:
        """Whether no engine is asked for, so that the next request must wake some."""
        roles = self.cluster.spec.roles
        return not any(role.replicas(self.cluster, name, self.observed) for name in roles)

    def blocked_in(self, component: names.Component) -> Blocked | None:
        """What cannot be written of one component."""
        blocked = self.blocked
        return blocked if blocked is not None and blocked.component == component else None


def before(cluster: HypicCluster, kind: str) -> Mapping[str, Any]:
    """A condition as it was written last; empty for none."""
    items: Sequence[Mapping[str, Any]] = cluster.status.get("conditions", ())
    return next((item for item in items if item["type"] == kind), {})
