"""The last choices, for the status page and its share of tokens found."""

from dataclasses import dataclass

from .choose import Choice

KEPT = 200
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Chosen:
    """One choice, in words; never holds text of a prompt.

    Attributes:
        at_s: when, by the fleet's clock.
        engine: its name.
        label: bounded word.
        reason: words for people.
        held_tokens: of the prompt, in the engine's cache.
        total_tokens: of the prompt.
    """

    at_s: float
    engine: str
    label: str
    reason: str
    held_tokens: float
    total_tokens: float


@dataclass(frozen=True, slots=True)
class Recent:
    """The last choices, oldest first."""

    chosen: tuple[Chosen, ...] = ()

    @property
    def found(self) -> float:
        """Share of these prompts' tokens that was in their engines' caches."""
        total = sum(one.total_tokens for one in self.chosen)
        return sum(one.held_tokens for one in self.chosen) / total if total else 0.0

    def last(self) -> tuple[Chosen, ...]:
        """Those to show, newest first."""
        return self.chosen[: -SHOWN - 1 : -1]


def chosen(choice: Choice, at_s: float) -> Chosen:
    """A choice in words."""
    return Chosen(
        at_s,
        choice.worker.at.name,
        choice.label,
        choice.reason,
        min(choice.offer.held_tokens, choice.size.total),
        choice.size.total,
    )
