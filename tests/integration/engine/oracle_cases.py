"""Random prompts of segments for engine and oracle alike."""

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass

SEPARATOR = "<<PIC_SEP>>"
ALPHABET = "abcdefghijklmnopqrstuvwxyz ,.ABCDEFGHIJ0123456789"
LENGTHS = (1, 2, 3, 5, 6, 7, 8, 9, 15, 16, 17, 40, 63, 64, 65, 66, 90, 150)
N_CASES = int(os.environ.get("HYPIC_ORACLE_CASES", "60"))


@dataclass(frozen=True)
class Case:
    """One prompt: its pieces, and which segments are to be computed in place."""

    pieces: tuple[str, ...]
    recompute: tuple[int, ...] | str = ()

    @property
    def text(self) -> str:
        return SEPARATOR.join(self.pieces)

    @property
    def ids(self) -> list[list[int]]:
        return [list(piece.encode()) for piece in self.pieces]


def cases(seed: int, n_cases: int = N_CASES) -> Iterator[Case]:
    """Prompts over a pool of documents: orders, mixes, repetitions, short and long segments."""
    dice = random.Random(seed)

    def text() -> str:
        return "".join(dice.choice(ALPHABET) for _ in range(dice.choice(LENGTHS)))

    pool = [text() for _ in range(12)]
    heads = [text() for _ in range(3)]
    for _ in range(n_cases):
        bodies = [dice.choice([*pool, text()]) for _ in range(dice.randrange(5))]
        pieces = (dice.choice(heads), *bodies, text())
        recompute: tuple[int, ...] | str = ()
        if dice.random() < 0.15:
            recompute = tuple(sorted(dice.sample(range(len(pieces)), dice.randrange(len(pieces)))))
        elif dice.random() < 0.1:
            recompute = "all"
        yield Case(pieces, recompute)
