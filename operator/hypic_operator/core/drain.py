"""How an engine goes without breaking a stream: annotated, out of the routers' choice, empty, gone.

Keeps its state in the pod's annotation, a deadline: asked again after a crash it goes on from
there. Does not ask engines or routers; the shell's `drainer` does.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from .observed import EngineSet, Observed
from .pods import Pod
from .roll import Roll

TOLD_WITHIN_S = 5.0
ANSWERS_WITHIN_S = 10.0
LOOK_AGAIN_S = 1.0
# By so much what an engine was told may differ from what was written.
_CLOCKS_DIFFER_S = 2.0

# annotate: tell the routers; close: tell the engine; release: the pod may be ended; reopen: it is
# wanted after all; forget: the same, whether or not its engine answers.
Act = Literal["annotate", "wait", "close", "release", "reopen", "forget"]


@dataclass(frozen=True, slots=True)
class Progress:
    """What an engine says of its drain.

    Attributes:
        draining: whether it takes no new requests.
        running: requests it answers.
        queued: requests that wait in it.
        transfers: requests whose keys and values are on their way to another engine.
        oldest_s: age of the oldest.
        left_s: seconds that its drain has left, by a clock that nobody sets.
    """

    draining: bool
    running: int = 0
    queued: int = 0
    transfers: int = 0
    oldest_s: float = 0.0
    left_s: float = 0.0

    @property
    def left(self) -> int:
        """What must end before the engine may."""
        return self.running + self.queued + self.transfers

    @property
    def lasts(self) -> bool:
        """Whether it still has streams, and time for them: a deadline that passed was a clock's."""
        return self.draining and self.left > 0 and self.left_s > _CLOCKS_DIFFER_S

    @property
    def words(self) -> str:
        """The same for people, such as `2 streams, oldest 41 s`."""
        if not self.left:
            return "no streams"
        streams = "1 stream" if self.left == 1 else f"{self.left} streams"
        return f"{streams}, oldest {self.oldest_s:.0f} s"


@dataclass(frozen=True, slots=True)
class Heard:
    """What was heard about one pod.

    Attributes:
        routed: whether some ready router may still choose it.
        progress: what its engine says; None when it does not answer.
    """

    routed: bool
    progress: Progress | None


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to one pod now.

    Attributes:
        pod: the pod.
        act: what is done.
        deadline: when it is ended whatever it does.
        words: why, for people.
        cut: whether it is ended while requests run.
    """

    pod: Pod
    act: Act
    deadline: datetime | None = None
    words: str = ""
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Drains:
    """What happens to the pods that are too many, and what their sets may have meanwhile.

    Attributes:
        steps: one a pod.
        sizes: replicas of each engine set that there is, by its name.
    """

    steps: tuple[Step, ...] = ()
    sizes: Mapping[str, int] | None = None

    @property
    def going(self) -> tuple[Step, ...]:
        """Pods that still have something to finish."""
        return tuple(step for step in self.steps if step.act in {"annotate", "wait", "close"})

    @property
    def words(self) -> str:
        """Where they are, for people."""
        return "; ".join(f"{step.pod.name}: {step.words}" for step in self.going)


def victims(observed: Observed, where: Roll) -> tuple[Pod, ...]:
    """Engines beyond what their sets are to have, the highest ordinals."""
    goals = _goals(observed, where)
    return tuple(
        pod
        for pod in observed.pods
        if pod.engine_set in goals and pod.ordinal >= goals[pod.engine_set]
    )


def drains(
    observed: Observed,
    where: Roll,
    heard: Mapping[str, Heard],
    *,
    timeout_s: float,
    now: datetime,
) -> Drains:
    """What happens to each pod that goes, and to each that was to go and is wanted again.

    Args:
        observed: what runs.
        where: how many engines each set is to have.
        heard: what was heard about each victim, by the pod's name.
        timeout_s: longest time that running requests get.
        now: the time.
    """
    going = victims(observed, where)
    steps = [_step(pod, heard.get(pod.name), timeout_s=timeout_s, now=now) for pod in going]
    steps += [_back(pod, now) for pod in observed.pods if pod.drain and pod not in going]
    goals = _goals(observed, where)
    sizes = {item.name: _size(item, goals[item.name], steps) for item in observed.sets()}
    return Drains(tuple(steps), sizes)


def _goals(observed: Observed, where: Roll) -> Mapping[str, int]:
    wanted, others = where.goals or {}, where.others or {}
    return {
        item.name: others[item.name] if item.name in others else wanted.get(item.component, 0)
        for item in observed.sets()
    }


def _size(item: EngineSet, goal: int, steps: Iterable[Step]) -> int:
    """What a set may have: its goal, and whoever is not done yet with all below it."""
    held = (s.pod.ordinal + 1 for s in steps if s.pod.engine_set == item.name and s.act in _HOLDING)
    return max(goal, *held, 0)


_HOLDING = frozenset(("annotate", "wait", "close"))


def _step(pod: Pod, heard: Heard | None, *, timeout_s: float, now: datetime) -> Step:
    if not pod.running:
        return Step(pod, "release", words="it serves nobody")
    deadline = _deadline(pod)
    latest = now + timedelta(seconds=timeout_s)
    # Later than that it was written before the timeout was lowered or a clock was put back.
    if deadline is None or deadline > latest:
        return Step(pod, "annotate", latest, "routers are being told")
    told_s = timeout_s - (deadline - now).total_seconds()
    progress = None if heard is None else heard.progress
    jumped = progress is not None and progress.lasts and not _too_long(progress, timeout_s)
    if now >= deadline and not jumped:
        cut = progress is None or progress.left > 0
        left = "it does not say what is left" if progress is None else f"{progress.words} left"
        return Step(pod, "release", deadline, f"its time of {timeout_s:g} s is up, {left}", cut)
    if (heard is None or heard.routed) and told_s < TOLD_WITHIN_S:
        return Step(pod, "wait", deadline, "routers are being told")
    if progress is None:
        if told_s < ANSWERS_WITHIN_S:
            return Step(pod, "wait", deadline, "its engine does not answer")
        words = "its engine does not answer the operator, and drains by itself when it is stopped"
        return Step(pod, "release", deadline, words)
    if not progress.draining or _too_long(progress, timeout_s):
        return Step(pod, "close", deadline, progress.words)
    if progress.left:
        return Step(pod, "wait", deadline, progress.words)
    return Step(pod, "release", deadline, "all of its requests have ended")


def _too_long(progress: Progress, timeout_s: float) -> bool:
    """Whether it goes by what it was told before the timeout was lowered."""
    return progress.left_s > timeout_s + _CLOCKS_DIFFER_S


def _back(pod: Pod, now: datetime) -> Step:
    deadline = _deadline(pod)
    over = not pod.running or deadline is None or now >= deadline
    return Step(pod, "forget" if over else "reopen", deadline, "it is wanted again")


def _deadline(pod: Pod) -> datetime | None:
    try:
        found = datetime.fromisoformat(pod.drain)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
