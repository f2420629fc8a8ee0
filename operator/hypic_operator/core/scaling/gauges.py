"""What one reading of a cluster's engines and routers says.

Does not read them; the shell's `meter` does.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from .load import Load

_PREFIX = "hypic_engine_"
_FOUND = ("reused", "radix")
_COMPUTED = ("computed", "filled", "recomputed")
_BYTES_PER_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class EngineGauges:
    """What one engine counts.

    Attributes:
        tokens: prompt tokens since it started, by where they came from.
        segments: segments that it holds.
        n_bytes: bytes that they take.
    """

    tokens: Mapping[str, float]
    segments: int = 0
    n_bytes: int = 0

    @classmethod
    def of(cls, samples: Iterable[tuple[str, Mapping[str, str], float]]) -> Self:
        """From name, labels and value of what it exposes."""
        tokens: dict[str, float] = {}
        sums = {"segments": 0.0, "bytes": 0.0}
        for name, labels, value in samples:
            short = name.removeprefix(_PREFIX)
            if short == "prompt_tokens_total":
                source = labels.get("source", "")
                tokens[source] = tokens.get(source, 0.0) + value
            elif short in sums:
                sums[short] += value
        return cls(tokens, int(sums["segments"]), int(sums["bytes"]))

    @property
    def computed(self) -> float:
        """Prompt tokens that were in no cache."""
        return sum(self.tokens.get(source, 0.0) for source in _COMPUTED)


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of a whole cluster.

    Attributes:
        at_s: when, on a clock that never goes back.
        engines: what each engine counts, by its pod's unique id.
        fleets: what each router shows.
        silent: ready routers and engines that did not answer.
        asked: unique ids of all pods that were asked.
    """

    at_s: float
    engines: Mapping[str, EngineGauges]
    fleets: tuple[Mapping[str, Any], ...] = ()
    silent: int = 0
    asked: frozenset[str] = frozenset()

    def load(self, before: "Reading | None", *, probes: int) -> Load | None:
        """What there is to do; None when no router tells.

        Args:
            before: the reading before this one, for what is counted by the second.
            probes: requests of the operator's own that are under way.
        """
        if not self.fleets:
            return None
        held = sum(int(fleet.get("held_requests", 0)) for fleet in self.fleets)
        waiting = sum(int(fleet.get("queued_requests", 0)) for fleet in self.fleets)
        running = sum(
            int(engine["requests"]) for fleet in self.fleets for engine in fleet["engines"]
        )
        return Load(
            max(0, running - probes) + waiting + held,
            held,
            self._computed_per_s(before),
            whole=not self.silent,
        )

    def cache(self) -> dict[str, Any] | None:
        """What the status says of the caches; None when no engine tells."""
        if not self.engines:
            return None
        known = self.engines.values()
        total = sum(value for engine in known for value in engine.tokens.values())
        found = sum(engine.tokens.get(source, 0.0) for engine in known for source in _FOUND)
        n_bytes = sum(engine.n_bytes for engine in known)
        said: dict[str, Any] = {
            "segments": sum(engine.segments for engine in known),
            "memory": f"{n_bytes / _BYTES_PER_MIB:.0f}Mi",
        }
        return said | {"hitRatio": f"{100 * found / total:.0f} %"} if total else said

    def _computed_per_s(self, before: "Reading | None") -> float | None:
        seconds = self.at_s - before.at_s if before else 0.0
        if before is None or seconds <= 0:
            return None
        grown = (
            engine.computed - before.engines[uid].computed
            for uid, engine in self.engines.items()
            if uid in before.engines
        )
        # An engine whose container was started again counts from zero.
        return sum(max(0.0, value) for value in grown) / seconds
