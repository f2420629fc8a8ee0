"""One pod of a cluster, read from the API server's object.

Does not fetch it, and does not decide what happens to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from . import names, trouble, unready
from .loading import NOT_SEEN, Loading

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of the cluster that is not being deleted.

    Attributes:
        name: its name.
        uid: which of the pods that have borne this name.
        component: what it is part of.
        revision: what its engine is; empty for a router.
        trouble: why it takes no requests.
        address: where it is reached; empty before it has one.
        drain: its drain annotation; empty for none.
        running: whether its container runs and can be reached.
        loading: when its engine started to load the model, and when it was ready.
    """

    name: str
    uid: str
    component: str
    revision: str
    trouble: trouble.Trouble | None
    address: str = ""
    drain: str = ""
    running: bool = False
    loading: Loading = NOT_SEEN

    @classmethod
    def of(cls, item: Object) -> Self:
        """From the API server's object."""
        labels, metadata, status = _labels(item), item["metadata"], item.get("status", {})
        containers, address = status.get("containerStatuses", ()), status.get("podIP", "")
        runs = any("running" in container.get("state", {}) for container in containers)
        return cls(
            metadata["name"],
            metadata.get("uid", ""),
            labels.get(names.LABEL_COMPONENT, ""),
            labels.get(names.LABEL_REVISION, ""),
            unready.of_pod(item),
            address=address,
            drain=metadata.get("annotations", {}).get(names.ANNOTATION_DRAIN, ""),
            running=runs and bool(address),
            loading=Loading.of(status),
        )

    @property
    def ready(self) -> bool:
        """Whether it takes requests."""
        return self.trouble is None

    @property
    def loads(self) -> bool:
        """Whether it downloads or loads the model."""
        return self.trouble is not None and self.trouble.rank is trouble.Rank.LOADING

    @property
    def engine_set(self) -> str:
        """The StatefulSet that an engine is of."""
        return self.name.rpartition("-")[0]

    @property
    def ordinal(self) -> int:
        """Which of its set's engines it is; the highest are the first to go."""
        digits = self.name.rpartition("-")[2]
        return int(digits) if digits.isdecimal() else -1


def leaving(item: Object) -> bool:
    """Whether it is being deleted, or was left lying when a Deployment put another in its place."""
    if "deletionTimestamp" in item["metadata"]:
        return True
    router = _labels(item).get(names.LABEL_COMPONENT) == "router"
    return router and item.get("status", {}).get("phase") == "Failed"


def _labels(item: Object) -> Mapping[str, str]:
    found: Mapping[str, str] = item["metadata"].get("labels", {})
    return found
