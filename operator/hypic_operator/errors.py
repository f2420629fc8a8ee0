"""Every error this package raises on purpose.

    OperatorError
    +-- SettingsError           a flag or variable has a value that cannot work
    +-- LeadershipLostError     another operator may act now
    +-- ClusterError            a request to kube-apiserver did not do what was asked
        +-- RefusedError        it said no and will say no again until something is changed
        |   +-- NameTakenError  an object of that name exists and belongs to somebody else
        +-- UnavailableError    it did not answer, or asked to come back later: try again

Does not hold: what is wrong with a HypicCluster. That is a condition in its status, never an error.
"""


class OperatorError(Exception):
    """Root of the hierarchy."""


class SettingsError(OperatorError):
    """A flag or variable has a value that cannot work; the message names it and what is allowed."""


class LeadershipLostError(OperatorError):
    """The Lease could not be renewed, so another operator may act now."""

    def __init__(self) -> None:
        super().__init__("the Lease could not be renewed; another operator may act now")


class ClusterError(OperatorError):
    """A request to kube-apiserver did not do what was asked."""


class RefusedError(ClusterError):
    """The API server said no and will say no again until somebody changes something."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class NameTakenError(RefusedError):
    """An object of the wanted name exists and is not controlled by this HypicCluster."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(
            "NameTaken",
            f"{kind} {name} exists and does not belong to this HypicCluster; "
            f"delete it or give the HypicCluster another name",
        )


class UnavailableError(ClusterError):
    """No answer, or an answer that asks to try again later.

    Attributes:
        retry_after_s: how long the API server wants to be left alone; 0 when it did not say.
    """

    def __init__(self, message: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
