"""How far engines are with the model, and when it should be there.

Does not know why an engine is not ready, and asks none: kubelets tell when containers started, and
the shell what the engines say.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Self, cast, get_args

Stage = Literal["download", "weights"]
_ALL_PERCENT = 100
# Too little is known of the pace before that.
_PACE_PERCENT = 5


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one engine was.

    Attributes:
        stage: whether it downloads the model or reads the weights.
        percent: of that, 0 to 100.
        at: when it first said so.
        first_percent: what it had said first of this stage.
        first_at: when that was; None for the first.
    """

    stage: Stage
    percent: int
    at: datetime
    first_percent: int = 0
    first_at: datetime | None = None

    @property
    def ends(self) -> datetime | None:
        """When all of it is there at the pace since it said so first; None for no idea."""
        done = self.percent - self.first_percent
        if self.first_at is None or done < _PACE_PERCENT or self.percent == _ALL_PERCENT:
            return None
        return self.at + (self.at - self.first_at) * ((_ALL_PERCENT - self.percent) / done)


def followed(before: Progress | None, now: Progress | None) -> Progress | None:
    """What is known after one more answer; while nothing moves, or once nothing is said, the same.

    Args:
        before: what was known.
        now: the answer; None for none.
    """
    if now is None or before is None:
        return now or before
    if before.stage != now.stage or now.percent < before.percent:
        return now
    if now.percent == before.percent:
        return before
    first_at = before.first_at or before.at
    first_percent = before.percent if before.first_at is None else before.first_percent
    return replace(now, first_percent=first_percent, first_at=first_at)


def progress(said: Any, *, at: datetime) -> Progress | None:
    """What the answer to ``GET /pic/ready`` tells; None when it tells nothing of the kind."""
    told = said.get("loading") if isinstance(said, Mapping) else None
    if not isinstance(told, Mapping):
        return None
    stage, percent = told.get("stage"), told.get("percent")
    if stage not in get_args(Stage) or not isinstance(percent, int):
        return None
    return Progress(cast("Stage", stage), max(0, min(percent, _ALL_PERCENT)), at)


@dataclass(frozen=True, slots=True)
class Loading:
    """When an engine's container started, and when its pod became ready.

    Attributes:
        started: None before it runs; while the model is downloaded, when that began.
        ready: None while it is not.
        downloads: whether the model is being downloaded.
    """

    started: datetime | None = None
    ready: datetime | None = None
    downloads: bool = False

    @classmethod
    def of(cls, status: Mapping[str, Any]) -> Self:
        """From a pod's status."""
        told = (item for item in status.get("conditions", ()) if item["type"] == "Ready")
        ready: Mapping[str, Any] = next((item for item in told if item["status"] == "True"), {})
        download = _started(status.get("initContainerStatuses", ()), "download")
        started = download or _started(status.get("containerStatuses", ()), "engine")
        return cls(started, _time(ready.get("lastTransitionTime")), download is not None)

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


def words(
    loadings: Iterable[tuple[Loading, Progress | None]], last_s: int | None, *, now: datetime
) -> str:
    """Since when engines load, how far they are, and when the last of them should be ready.

    Times and not durations, so that the sentence stays as it is while nothing happens.

    Args:
        loadings: of engines, those that are ready too, with what each said last.
        last_s: what a load took before; None where none was seen.
        now: the time.
    """
    under_way = [item for item in loadings if item[0].started and item[0].ready is None]
    starts = [item.started for item, _ in under_way if item.started]
    if not starts:
        return ""
    said = [f"since {_clock(min(starts))}"]
    slowest = min((item for _, item in under_way if item), key=_done, default=None)
    if slowest is not None:
        said.append(_share(slowest))
    if last_s is not None and not any(item.downloads for item, _ in under_way):
        end = max(starts) + timedelta(seconds=last_s)
        will = "should be" if now <= end else "should have been"
        said.append(f"it took {last_s} s before, so it {will} ready about {_clock(end)}")
    elif slowest is not None:
        said += _at_this_pace(slowest, now)
    else:
        said.append("there was no load before to estimate from")
    return "; ".join(said)


def _done(said: Progress) -> tuple[bool, int]:
    return said.stage == "weights", said.percent


def _share(said: Progress) -> str:
    what = "the model is downloaded" if said.stage == "download" else "the weights are read"
    return f"{said.percent} % of {what}"


def _at_this_pace(said: Progress, now: datetime) -> list[str]:
    end = said.ends
    if end is None:
        return []
    will = "is" if now <= end else "should have been"
    return [f"at this pace all of it {will} there about {_clock(end)}"]


def _started(statuses: Iterable[Mapping[str, Any]], name: str) -> datetime | None:
    """Since when the container of that name runs; None when it does not."""
    found = (item.get("state", {}) for item in statuses if item["name"] == name)
    state: Mapping[str, Any] = next(found, {})
    return _time(state.get("running", {}).get("startedAt"))


def _clock(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%H:%M:%S UTC")


def _time(text: str | None) -> datetime | None:
    return None if not text else datetime.fromisoformat(text)
