"""What routers and engines say there is to do.

Does not judge it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """The load of one cluster at one moment.

    Attributes:
        requests: that engines answer, or that wait for one.
        held: of these, requests that wait for engines to wake.
        computed_per_s: prompt tokens a second that no cache had; None while it is not known.
        whole: whether every ready router and engine was heard; else it may be more.
    """

    requests: int
    held: int = 0
    computed_per_s: float | None = None
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What would have been right at one moment.

    Attributes:
        at_s: when, on a clock that never goes back.
        engines: how many.
        busy: whether there was anything to do.
    """

    at_s: float
    engines: int
    busy: bool
