from dataclasses import replace
from datetime import timedelta

import pytest

from hypic_operator.core import drain
from hypic_operator.core.drain import Heard, Progress, Step
from hypic_operator.core.observed import Observed
from hypic_operator.core.pods import Pod
from hypic_operator.core.roll import Asked, roll

from ...support import resources
from ...support.planned import NOW

IDLE = Progress(draining=True)
BUSY = Progress(draining=True, running=2, oldest_s=41.3)
OPEN = Progress(draining=False, running=2, oldest_s=41.3)
TIMEOUT_S = 60.0


def _annotated(told_s: float) -> str:
    return (NOW + timedelta(seconds=TIMEOUT_S - told_s)).isoformat()


def _step(*, told_s: float | None, heard: Heard | None = None, running: bool = True) -> Step:
    """What happens to the one engine of a role that is to have none."""
    children, pods = resources.snapshot(resources.cluster())
    name = pods[0]["metadata"]["name"]
    if told_s is not None:
        pods[0]["metadata"]["annotations"] = {"serving.hypic.dev/drain": _annotated(told_s)}
    if not running:
        pods[0]["status"] = resources.crashed(1, "boom")
    observed = Observed.of(resources.cluster(), children, pods)
    where = roll(Asked(observed.sets()[0].revision, {"prefill": 0}), observed, served_last="")
    said = {name: heard} if heard else {}
    found = drain.drains(observed, where, said, timeout_s=TIMEOUT_S, now=NOW)
    (step,) = found.steps
    return step


def test_at_first_the_routers_are_told_by_a_deadline() -> None:
    step = _step(told_s=None)
    assert (step.act, step.deadline) == ("annotate", NOW + timedelta(seconds=TIMEOUT_S))


@pytest.mark.parametrize(
    ("told_s", "routed", "act"),
    [(1, True, "wait"), (1, False, "close"), (4.9, True, "wait"), (5, True, "close")],
)
def test_the_engine_is_told_when_no_router_chooses_it_or_they_had_five_seconds(
    told_s: float, routed: bool, act: str
) -> None:
    assert _step(told_s=told_s, heard=Heard(routed, OPEN)).act == act


@pytest.mark.parametrize(
    ("progress", "told_s", "act"),
    [(BUSY, 20, "wait"), (IDLE, 20, "release"), (BUSY, 59.9, "wait"), (BUSY, 60, "release")],
)
def test_the_engine_goes_when_its_last_stream_has_ended_or_its_time_is_up(
    progress: Progress, told_s: float, act: str
) -> None:
    assert _step(told_s=told_s, heard=Heard(False, progress)).act == act


@pytest.mark.parametrize(
    ("told_s", "left_s", "act"),
    [(60, 50, "wait"), (3600, 50, "wait"), (60, 1, "release"), (20, 40, "wait")],
)
def test_a_clock_that_jumps_ahead_cuts_no_stream(told_s: float, left_s: float, act: str) -> None:
    assert _step(told_s=told_s, heard=Heard(False, replace(BUSY, left_s=left_s))).act == act
    assert _step(told_s=told_s, heard=Heard(False, replace(IDLE, left_s=left_s))).act == "release"


def test_an_engine_hears_of_a_timeout_that_was_lowered_meanwhile() -> None:
    assert _step(told_s=1, heard=Heard(False, replace(BUSY, left_s=300))).act == "close"
    assert _step(told_s=1, heard=Heard(False, replace(BUSY, left_s=59))).act == "wait"
    # It could not be told: the new deadline holds all the same.
    assert _step(told_s=60, heard=Heard(False, replace(BUSY, left_s=3500))).act == "release"


def test_only_what_still_runs_at_the_deadline_is_said_to_be_cut() -> None:
    assert _step(told_s=60, heard=Heard(False, BUSY)).cut
    assert not _step(told_s=60, heard=Heard(False, IDLE)).cut
    assert _step(told_s=60).cut


@pytest.mark.parametrize(("told_s", "act"), [(9, "wait"), (10, "release")])
def test_an_engine_that_does_not_answer_is_left_to_its_own_drain(told_s: float, act: str) -> None:
    assert _step(told_s=told_s, heard=Heard(False, None)).act == act


def test_a_crashing_engine_holds_nobody_back_llmkube_1250() -> None:
    assert _step(told_s=None, running=False).act == "release"


@pytest.mark.parametrize("told_s", [-1, -3600])
def test_a_deadline_that_is_too_late_is_written_again(told_s: float) -> None:
    step = _step(told_s=told_s, heard=Heard(False, BUSY))
    assert (step.act, step.deadline) == ("annotate", NOW + timedelta(seconds=TIMEOUT_S))


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (BUSY, "2 streams, oldest 41 s"),
        (Progress(draining=True, transfers=1, oldest_s=0.2), "1 stream, oldest 0 s"),
        (IDLE, "no streams"),
    ],
)
def test_progress_reads_like_a_sentence(progress: Progress, words: str) -> None:
    assert progress.words == words


@pytest.mark.parametrize(
    ("drain_annotation", "running", "act"),
    [
        (_annotated(20), True, "reopen"),
        (_annotated(60), True, "forget"),
        (_annotated(20), False, "forget"),
        ("soon", True, "forget"),
        ("2026-11-30T12:00:00", True, "forget"),
    ],
)
def test_an_engine_that_is_wanted_again_goes_on(
    drain_annotation: str, running: bool, act: str
) -> None:
    pod = Pod("a-0", "u", "prefill", "r", None, drain=drain_annotation, running=running)
    observed = Observed(pods=(pod,))
    found = drain.drains(
        observed,
        roll(Asked("r", {"prefill": 1}), observed, served_last=""),
        {},
        timeout_s=TIMEOUT_S,
        now=NOW,
    )
    assert [step.act for step in found.steps] == [act]
    assert found.going == ()
