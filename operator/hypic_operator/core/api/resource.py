"""The HypicCluster: its spec, its metadata, and the status that was last written.

Does not hold the parts of the spec that have a module of their own.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from .front import Router
from .frozen import Fields, Frozen
from .model import Model, ModelCache
from .template import Template

Mode = Literal["addition", "transition", "transition_rope", "transition_rope_recompute"]
RoleName = Literal["prefill", "decode"]
Strategy = Literal["Auto", "Surge", "Recreate"]
When = Literal["Auto", "Always", "Never"]


class Pic(Frozen):
    """Position-independent caching."""

    mode: Mode = "transition_rope_recompute"
    separator: str = "<<PIC_SEP>>"
    seam: Annotated[str, BeforeValidator(str)] = "8"
    min_segment_tokens: int = 6
    max_segments: int = 512
    memory: str | None = None


class Scaling(Frozen):
    """Within which bounds others set a role's number, and by which metrics."""

    min: int = 1
    max: int
    by: Literal["Operator", "Others"] = "Operator"
    requests: int = 8
    uncached_tokens_per_second: int | None = None
    calm_seconds: int = 300
    idle_seconds: int = 600
    metrics: tuple[Fields, ...] = ()
    behavior: Fields | None = None

    @property
    def ours(self) -> bool:
        """Whether the operator itself sets the number."""
        return self.by == "Operator" and not self.metrics


class Role(Frozen):
    """The engines that do one part of the work, or all of it where there is one role."""

    replicas: int = 1
    tensor_parallel: int = 1
    scaling: Scaling | None = None
    template: Template = Template()


class Drain(Frozen):
    """How a pod stops."""

    timeout_seconds: int = 60


class Rollout(Frozen):
    """How a new revision takes the place of the old one."""

    strategy: Strategy = "Auto"
    max_skew: int = 1


class NetworkPolicy(Frozen):
    """Who reaches the pods."""

    enabled: bool = True
    metrics_from: tuple[Fields, ...] = (
        {
            "namespaceSelector": {},
            "podSelector": {"matchLabels": {"app.kubernetes.io/name": "prometheus"}},
        },
    )
    engines_from: tuple[Fields, ...] = ()


class Monitoring(Frozen):
    """How Prometheus finds the pods."""

    pod_monitor: When = "Auto"
    labels: Mapping[str, str] = {}


class Spec(Frozen):
    """What the user asks for."""

    model: Model
    model_cache: ModelCache = ModelCache()
    pic: Pic = Pic()
    prefill: Role = Role()
    decode: Role | None = None
    router: Router = Router()
    drain: Drain = Drain()
    rollout: Rollout = Rollout()
    network_policy: NetworkPolicy = NetworkPolicy()
    monitoring: Monitoring = Monitoring()

    @property
    def roles(self) -> Mapping[RoleName, Role]:
        """The roles that are asked for, by name."""
        given: dict[RoleName, Role | None] = {"prefill": self.prefill, "decode": self.decode}
        return {name: role for name, role in given.items() if role is not None}

    @property
    def may_sleep(self) -> bool:
        """Whether there may be no engine of some role while nobody asks."""
        return any(role.scaling and not role.scaling.min for role in self.roles.values())


class Metadata(Frozen):
    """The part of an object's metadata that decisions need."""

    name: str
    namespace: str
    uid: str
    generation: int
    deletion_timestamp: str | None = None


class HypicCluster(Frozen):
    """One custom resource, with the status that was last written to it."""

    metadata: Metadata
    spec: Spec
    status: Mapping[str, Any] = {}

    @property
    def deleting(self) -> bool:
        """Whether somebody has asked for its deletion: nothing may be created any more."""
        return self.metadata.deletion_timestamp is not None
