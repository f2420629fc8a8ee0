"""How many requests may be sent again: a share of the traffic, so that retries never pile up."""

from dataclasses import dataclass

SHARE = 0.2
RESERVE = 100.0


@dataclass(frozen=True, slots=True)
class Budget:
    """Retries that are left."""

    left: float = RESERVE

    def allows(self) -> bool:
        """Whether one more retry may be made."""
        return self.left >= 1.0


def earned(budget: Budget) -> Budget:
    """The budget once a request has arrived."""
    return Budget(min(budget.left + SHARE, RESERVE))


def spent(budget: Budget) -> Budget:
    """The budget once a retry has been made."""
    return Budget(max(budget.left - 1.0, 0.0))
