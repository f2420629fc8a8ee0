"""When a model that is being loaded should be there."""

from datetime import UTC, datetime

import pytest

from hypic_operator.core import loading
from hypic_operator.core.loading import Loading

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


def test_the_estimate_is_a_time_that_stays_the_same_while_it_loads() -> None:
    loads = [
        Loading(_at("12:00:10")),
        Loading(_at("12:00:20")),
        Loading(_at("11:00:00"), _at("11:01:00")),
    ]
    assert loading.words(loads, 95) == (
        "since 12:00:10 UTC; it took 95 s before, so it should be ready about 12:01:55 UTC"
    )


def test_the_first_load_has_no_estimate() -> None:
    said = loading.words([Loading(_at("12:00:10"))], None)
    assert said == "since 12:00:10 UTC; there was no load before to estimate from"
    assert loading.words([Loading()], 95) == ""
