"""How long engines took to load the model, and when the one that loads it now should be ready.

Does not know why an engine is not ready, and asks none: kubelets tell when containers started.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Loading:
    """When an engine's container started, and when its pod became ready.

    Attributes:
        started: None before it runs.
        ready: None while it is not.
    """

    started: datetime | None = None
    ready: datetime | None = None

    @classmethod
    def of(cls, status: Mapping[str, Any]) -> Self:
        """From a pod's status."""
        engines = (item for item in status.get("containerStatuses", ()) if item["name"] == "engine")
        state: Mapping[str, Any] = next((item.get("state", {}) for item in engines), {})
        told = (item for item in status.get("conditions", ()) if item["type"] == "Ready")
        ready: Mapping[str, Any] = next((item for item in told if item["status"] == "True"), {})
        return cls(
            _time(state.get("running", {}).get("startedAt")),
            _time(ready.get("lastTransitionTime")),
        )

    @property
    def took_s(self) -> int | None:
        """Seconds from the one to the other; None while it is not ready."""
        if self.started is None or self.ready is None or self.ready < self.started:
            return None
        return round((self.ready - self.started).total_seconds())


NOT_SEEN = Loading()


def shortest_s(loadings: Iterable[Loading]) -> int | None:
    """The shortest load: engines that lost readiness later seem to have loaded for longer."""
    return min((item.took_s for item in loadings if item.took_s is not None), default=None)


def words(loadings: Iterable[Loading], last_s: int | None) -> str:
    """Since when engines load, and when the last of them should be ready.

    Times and not durations, so that the sentence stays as it is while nothing happens.

    Args:
        loadings: of engines, those that are ready too.
        last_s: what a load took before; None where none was seen.
    """
    starts = [item.started for item in loadings if item.started and item.ready is None]
    if not starts:
        return ""
    since = f"since {_clock(min(starts))}"
    if last_s is None:
        return f"{since}; there was no load before to estimate from"
    end = max(starts) + timedelta(seconds=last_s)
    return f"{since}; it took {last_s} s before, so it should be ready about {_clock(end)}"


def _clock(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%H:%M:%S UTC")


def _time(text: str | None) -> datetime | None:
    return None if not text else datetime.fromisoformat(text)
