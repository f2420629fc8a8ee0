"""`spec.router`: the front door, and how it is reached from outside.

Does not know how a router chooses.
"""

from collections.abc import Mapping
from typing import Literal

from .frozen import Fields, Frozen
from .template import RouterTemplate

Policy = Literal["segment", "least_load", "round_robin"]


class SecretName(Frozen):
    """A Secret of the namespace, all of it."""

    name: str


class Ingress(Frozen):
    """A host name of an ingress controller."""

    host: str
    class_name: str | None = None
    annotations: Mapping[str, str] = {}
    tls_secret_name: str | None = None


class Gateway(Frozen):
    """A route of Gateway API."""

    parent_refs: tuple[Fields, ...]
    hostnames: tuple[str, ...] = ()
    annotations: Mapping[str, str] = {}


class Router(Frozen):
    """The front door."""

    replicas: int = 2
    policy: Policy = "segment"
    api_keys_secret_ref: SecretName | None = None
    ingress: Ingress | None = None
    gateway: Gateway | None = None
    template: RouterTemplate = RouterTemplate()
