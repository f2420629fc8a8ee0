"""What users add to the pods of engines and routers.

Typed on purpose: what is not here, such as host networking or a privileged container, cannot be
said.
"""

from collections.abc import Mapping

from .frozen import Fields, Frozen, PullPolicy


class EngineTemplate(Frozen):
    """What the user adds to the engine's container."""

    image: str | None = None
    image_pull_policy: PullPolicy | None = None
    resources: Fields | None = None
    env: tuple[Fields, ...] = ()
    volume_mounts: tuple[Fields, ...] = ()
    extra_args: tuple[str, ...] = ()


class Scheduling(Frozen):
    """What the user adds to any pod: who it is, and which node takes it."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    node_selector: Mapping[str, str] = {}
    tolerations: tuple[Fields, ...] = ()
    affinity: Fields | None = None
    topology_spread_constraints: tuple[Fields, ...] = ()
    priority_class_name: str | None = None
    image_pull_secrets: tuple[Fields, ...] = ()


class Template(Scheduling):
    """What the user adds to the engine's pod."""

    runtime_class_name: str | None = None
    resource_claims: tuple[Fields, ...] = ()
    volumes: tuple[Fields, ...] = ()
    engine: EngineTemplate = EngineTemplate()


class RouterTemplate(Scheduling):
    """What the user adds to the router's pod."""

    resources: Fields | None = None
