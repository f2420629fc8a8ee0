"""`spec.model` and `spec.modelCache`: what is served, and where its files come from.

Does not say how they reach a pod; `desired.weights` does.
"""

from .frozen import Frozen, PullPolicy


class Claim(Frozen):
    """A folder of a PersistentVolumeClaim."""

    claim_name: str
    path: str = ""


class HostPath(Frozen):
    """A folder of the node."""

    path: str


class SecretKey(Frozen):
    """One value of a Secret of the namespace."""

    name: str
    key: str = "token"


class HuggingFace(Frozen):
    """A repository of Hugging Face, downloaded before an engine starts."""

    repo: str
    revision: str = "main"
    token_secret_ref: SecretKey | None = None


class ImageSource(Frozen):
    """A folder of an OCI image or artifact, mounted as a volume."""

    reference: str
    path: str = ""
    pull_policy: PullPolicy | None = None


class Source(Frozen):
    """Where the model's files are: exactly one of the fields."""

    hugging_face: HuggingFace | None = None
    pvc: Claim | None = None
    image: ImageSource | None = None
    host_path: HostPath | None = None


class Model(Frozen):
    """The served model."""

    name: str
    source: Source


class CacheClaim(Frozen):
    """A PersistentVolumeClaim that engines share."""

    claim_name: str


class ModelCache(Frozen):
    """Where a download is kept for other engines: at most one of the fields."""

    pvc: CacheClaim | None = None
    node: HostPath | None = None
