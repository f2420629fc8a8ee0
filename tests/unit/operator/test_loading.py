"""When a model that is being loaded should be there."""

from datetime import UTC, datetime, timedelta

import pytest

from hypic_operator.core import loading
from hypic_operator.core.loading import Loading, Progress, Stage, followed, progress

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


def _said(*percents: int, stage: Stage = "weights") -> Progress:
    """What is known when these were said, one each ten seconds from 12:00:20 on."""
    known = None
    for number, percent in enumerate(percents):
        at = _at("12:00:20") + timedelta(seconds=10 * number)
        known = followed(known, Progress(stage, percent, at))
    assert known is not None
    return known


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
    loads = [(LOADS[0], _said(5, 25))]
    assert loading.words(loads, None, now=NOW) == (
        "since 12:00:10 UTC; 25 % of the weights are read; "
        "at this pace all of it is there about 12:01:07 UTC"
    )


def test_a_load_that_stands_still_says_the_same_and_not_a_later_end() -> None:
    moved, stands = _said(5, 25), _said(5, 25, 25, 25)
    assert moved == stands
    said = loading.words([(LOADS[0], stands)], None, now=_at("12:01:08"))
    assert said.endswith("at this pace all of it should have been there about 12:01:07 UTC")


def test_what_was_there_before_is_no_part_of_the_pace() -> None:
    assert _said(80).ends is None
    assert _said(80, 90).ends == _at("12:00:40")


def test_an_answer_that_did_not_come_changes_nothing_and_another_stage_begins_anew() -> None:
    known = _said(5, 25)
    assert followed(known, None) is known
    assert followed(None, None) is None
    for anew in (Progress("download", 30, NOW), Progress("weights", 10, NOW)):
        assert followed(known, anew) is anew


def test_the_slowest_is_told_and_a_download_is_slower_than_a_load() -> None:
    loads = [(LOADS[0], _said(60)), (LOADS[0], _said(25)), LOADS]
    assert "; 25 % of the weights are read; it took 95 s" in loading.words(loads, 95, now=NOW)
    download = (Loading(_at("12:00:10"), downloads=True), _said(60, 80, stage="download"))
    assert loading.words([*loads, download], 95, now=NOW) == (
        "since 12:00:10 UTC; 80 % of the model is downloaded; "
        "at this pace all of it should have been there about 12:00:40 UTC"
    )


@pytest.mark.parametrize("percents", [(0,), (41,), (41, 45), (5, 100)])
def test_a_pace_is_told_when_it_can_be_known(percents: tuple[int, ...]) -> None:
    words = f"since 12:00:10 UTC; {percents[-1]} % of the weights are read"
    assert loading.words([(LOADS[0], _said(*percents))], None, now=NOW) == words


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
