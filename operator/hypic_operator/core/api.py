"""The custom resource as frozen models, read from what the API server stores.

Does not validate: limits are the schema's (`crds/`); defaults here repeat the schema's, so that a
hash of what differs from them stays the same when a later version adds a field.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic.alias_generators import to_camel

Mode = Literal["addition", "transition", "transition_rope", "transition_rope_recompute"]
Policy = Literal["segment", "least_load", "round_robin"]
PullPolicy = Literal["Always", "IfNotPresent", "Never"]
RoleName = Literal["prefill", "decode"]
Fields = Mapping[str, Any]


class Frozen(BaseModel):
    """Immutable, camelCase on the wire; unknown fields are somebody else's."""

    model_config = ConfigDict(
        frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore"
    )


class Claim(Frozen):
    """A folder of a PersistentVolumeClaim."""

    claim_name: str
    path: str = ""


class HostPath(Frozen):
    """A folder of the node."""

    path: str


class Source(Frozen):
    """Where the model's files are: exactly one of the fields."""

    pvc: Claim | None = None
    host_path: HostPath | None = None


class Model(Frozen):
    """The served model."""

    name: str
    source: Source


class Pic(Frozen):
    """Position-independent caching."""

    mode: Mode = "transition_rope_recompute"
    separator: str = "<<PIC_SEP>>"
    seam: Annotated[str, BeforeValidator(str)] = "8"
    min_segment_tokens: int = 6
    max_segments: int = 512


class EngineTemplate(Frozen):
    """What the user adds to the engine's container."""

    image: str | None = None
    image_pull_policy: PullPolicy | None = None
    resources: Fields | None = None
    env: tuple[Fields, ...] = ()
    volume_mounts: tuple[Fields, ...] = ()
    extra_args: tuple[str, ...] = ()


class Template(Frozen):
    """What the user adds to the engine's pod."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    node_selector: Mapping[str, str] = {}
    tolerations: tuple[Fields, ...] = ()
    affinity: Fields | None = None
    topology_spread_constraints: tuple[Fields, ...] = ()
    priority_class_name: str | None = None
    image_pull_secrets: tuple[Fields, ...] = ()
    runtime_class_name: str | None = None
    volumes: tuple[Fields, ...] = ()
    engine: EngineTemplate = EngineTemplate()


class Role(Frozen):
    """The engines that do one part of the work, or all of it where there is one role."""

    replicas: int = 1
    tensor_parallel: int = 1
    template: Template = Template()


class Router(Frozen):
    """The front door."""

    replicas: int = 2
    policy: Policy = "segment"


class Drain(Frozen):
    """How a pod stops."""

    timeout_seconds: int = 60


class Spec(Frozen):
    """What the user asks for."""

    model: Model
    pic: Pic = Pic()
    prefill: Role = Role()
    decode: Role | None = None
    router: Router = Router()
    drain: Drain = Drain()

    @property
    def roles(self) -> Mapping[RoleName, Role]:
        """The roles that are asked for, by name."""
        given: dict[RoleName, Role | None] = {"prefill": self.prefill, "decode": self.decode}
        return {name: role for name, role in given.items() if role is not None}


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
    status: Fields = {}

    @property
    def deleting(self) -> bool:
        """Whether somebody has asked for its deletion: nothing may be created any more."""
        return self.metadata.deletion_timestamp is not None
