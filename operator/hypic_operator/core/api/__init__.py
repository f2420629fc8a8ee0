"""The custom resource as frozen models, read from what the API server stores.

Does not validate: limits are the schema's (`crds/`); defaults here repeat the schema's, so that a
hash of what differs from them stays the same when a later version adds a field.
"""

from .frozen import Fields, Frozen
from .resource import HypicCluster, Role, RoleName, Scaling, Spec, Strategy
from .template import Scheduling

__all__ = [
    "Fields",
    "Frozen",
    "HypicCluster",
    "Role",
    "RoleName",
    "Scaling",
    "Scheduling",
    "Spec",
    "Strategy",
]
