"""How hard each engine's memory is used: what it had to throw out lately, against the others.

An engine that throws out more than its peers throws out what was used more recently, so what is
filled there costs more than its time. Does not know what was thrown out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Pressure:
    """What engines threw out, the more recent counting more.

    Attributes:
        evicted: tokens, by engine.
        relative: the same over their mean.
    """

    evicted: Mapping[str, float] = field(default_factory=dict)
    relative: Mapping[str, float] = field(default_factory=dict)

    def of(self, engine: str) -> float:
        """0 while it has room, 1 when it throws out as much as the mean."""
        return self.relative.get(engine, 0.0)


def after_eviction(
    pressure: Pressure, engine: str, n_tokens: int, *, held_tokens: Mapping[str, int]
) -> Pressure:
    """The pressure once an engine has thrown out ``n_tokens``.

    What was thrown out before counts less by the share of all memory that this is, so that the
    past is as long as it takes to fill the memory of all engines once.

    Args:
        pressure: before.
        engine: its name.
        n_tokens: what it threw out.
        held_tokens: what each engine of the fleet holds.
    """
    kept = max(1.0 - n_tokens / max(sum(held_tokens.values()), 1), 0.0)
    evicted = {name: pressure.evicted.get(name, 0.0) * kept for name in held_tokens}
    evicted[engine] = evicted.get(engine, 0.0) + n_tokens
    mean = sum(evicted.values()) / len(evicted)
    return Pressure(evicted, {name: n_tokens / mean for name, n_tokens in evicted.items()})
