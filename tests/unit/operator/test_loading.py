"""When a model that is being loaded should be there."""

from datetime import UTC, datetime

import pytest

from hypic_operator.core import loading
from hypic_operator.core.loading import Loading, Progress, progress

from ...support import resources


def _at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-01T{clock}").replace(tzinfo=UTC)


def test_a_kubelet_tells_when_the_engine_started_and_was_ready() -> None:
    status = {**resources.READY}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:01:35Z"}
    status["conditions"] = [ready]
    found = Loading.of(status)
    assert found == Loading(_at("00:00:00"), _at("00:01:35"))
    assert found.took_s == 95


@pytest.mark.parametrize(
    "status", [{}, resources.READY, resources.loading(), resources.crashed(1, "")]
)
def test_what_is_not_told_took_no_time_that_is_known(status: dict[str, object]) -> None:
    assert Loading.of(status).took_s is None


def test_an_engine_that_was_not_ready_for_a_while_is_no_measure() -> None:
    start = _at("00:00:00")
    seen = [Loading(start, _at("09:00:00")), Loading(start, _at("00:00:40")), Loading(start)]
    assert loading.shortest_s(seen) == 40
    assert loading.shortest_s([]) is None


def test_a_download_is_told_apart_from_a_load() -> None:
    runs = {"name": "download", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    waits = {"name": "engine", "state": {"waiting": {"reason": "PodInitializing"}}}
    status = {"initContainerStatuses": [runs], "containerStatuses": [waits]}
    assert Loading.of(status) == Loading(_at("00:00:00"), downloads=True)
    ended = {"name": "download", "state": {"terminated": {"exitCode": 0}}}
    loads = {"name": "engine", "state": runs["state"]}
    status = {"initContainerStatuses": [ended], "containerStatuses": [loads]}
    assert Loading.of(status) == Loading(_at("00:00:00"))


NOW = _at("12:01:00")
LOADS = (Loading(_at("12:00:10")), None)


def test_the_estimate_is_a_time_that_stays_the_same_while_it_loads() -> None:
    loads = [LOADS, (Loading(_at("12:00:20")), None)]
    loads.append((Loading(_at("11:00:00"), _at("11:01:00")), None))
    words = "since 12:00:10 UTC; it took 95 s before, so it should be ready about 12:01:55 UTC"
    assert loading.words(loads, 95, now=_at("12:00:30")) == words
    assert loading.words(loads, 95, now=_at("12:01:55")) == words


def test_an_estimate_that_was_wrong_is_not_repeated() -> None:
    said = loading.words([LOADS], 40, now=_at("12:00:51"))
    assert said.endswith("so it should have been ready about 12:00:50 UTC")


def test_the_first_load_has_no_estimate_until_the_engine_says_how_far_it_is() -> None:
    said = loading.words([LOADS], None, now=NOW)
    assert said == "since 12:00:10 UTC; there was no load before to estimate from"
    assert loading.words([(Loading(), None)], 95, now=NOW) == ""
    loads = [(LOADS[0], Progress("weights", 25, _at("12:00:30")))]
    assert loading.words(loads, None, now=NOW) == (
        "since 12:00:10 UTC; 25 % of the weights are read; "
        "at this pace all of it is there about 12:01:30 UTC"
    )


def test_the_slowest_is_told_and_a_download_is_slower_than_a_load() -> None:
    at = _at("12:00:30")
    loads = [
        (LOADS[0], Progress("weights", 60, at)),
        (LOADS[0], Progress("weights", 25, at)),
        (LOADS[0], None),
    ]
    assert "; 25 % of the weights are read; it took 95 s" in loading.words(loads, 95, now=NOW)
    loads.append((Loading(_at("12:00:10"), downloads=True), Progress("download", 80, at)))
    assert loading.words(loads, 95, now=NOW) == (
        "since 12:00:10 UTC; 80 % of the model is downloaded; "
        "at this pace all of it is there about 12:00:35 UTC"
    )


@pytest.mark.parametrize("percent", [0, 4, 100])
def test_a_pace_is_told_when_it_can_be_known(percent: int) -> None:
    loads = [(LOADS[0], Progress("weights", percent, _at("12:00:30")))]
    words = f"since 12:00:10 UTC; {percent} % of the weights are read"
    assert loading.words(loads, None, now=NOW) == words
    early = [(LOADS[0], Progress("weights", 50, _at("12:00:00")))]
    assert "pace" not in loading.words(early, None, now=NOW)


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        {},
        {"loading": None},
        {"loading": {"stage": "weights"}},
        {"loading": {"stage": "weights", "percent": "41"}},
        {"loading": {"stage": "other", "percent": 41}},
        {"loading": {"stage": [], "percent": 41}},
    ],
)
def test_an_odd_answer_tells_nothing(said: object) -> None:
    assert progress(said, at=NOW) is None


def test_a_share_is_between_nothing_and_all() -> None:
    for percent, told in ((-1, 0), (41, 41), (1_000, 100)):
        said = {"loading": {"stage": "download", "percent": percent}}
        assert progress(said, at=NOW) == Progress("download", told, NOW)
