"""Random prompts of segments, what the oracle answers, and what an engine does."""

import concurrent.futures
import functools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ...support.engine_server import Engine
from ...support.oracle import Mode, Model, Piece, Stream, forward, full, generate, load, plan

SEPARATOR = "<<PIC_SEP>>"
ALPHABET = "abcdefghijklmnopqrstuvwxyz ,.ABCDEFGHIJ0123456789"
LENGTHS = (1, 2, 3, 5, 6, 7, 8, 9, 15, 16, 17, 40, 63, 64, 65, 66, 90, 150)
N_TOKENS = 6
N_AT_ONCE = 8


@dataclass(frozen=True)
class Case:
    """One prompt: its pieces, which segments are to be computed in place, how it is answered."""

    pieces: tuple[str, ...]
    recompute: tuple[int, ...] | str = ()
    streams: bool = False

    @property
    def text(self) -> str:
        return SEPARATOR.join(self.pieces)

    @property
    def ids(self) -> list[list[int]]:
        """Of the pieces that hold something: empty ones are no segments."""
        return [list(piece.encode()) for piece in self.pieces if piece]


def cases(seed: int, n_cases: int) -> list[Case]:
    """Prompts over a pool of documents: orders, mixes, repetitions, empty, short and long ones."""
    dice = random.Random(seed)

    def text() -> str:
        return "".join(dice.choice(ALPHABET) for _ in range(dice.choice(LENGTHS)))

    pool = [text() for _ in range(12)]
    heads = [text() for _ in range(3)]
    drawn = []
    for _ in range(n_cases):
        bodies = [dice.choice([*pool, text()]) for _ in range(dice.randrange(5))]
        pieces = [dice.choice(heads), *bodies, text()]
        recompute: tuple[int, ...] | str = ()
        if dice.random() < 0.15:
            recompute = tuple(sorted(dice.sample(range(len(pieces)), dice.randrange(len(pieces)))))
        elif dice.random() < 0.1:
            recompute = "all"
        elif dice.random() < 0.1:
            pieces.insert(dice.randrange(len(pieces)), "")
        drawn.append(Case(tuple(pieces), recompute, streams=dice.random() < 0.25))
    return drawn


def wanted(model: Model, case: Case, mode: Mode = "transition_rope_recompute") -> list[int]:
    """What the oracle answers."""
    if len(case.ids) == 1:
        return full(model, case.ids[0], N_TOKENS)
    recompute = case.recompute if case.recompute == "all" else frozenset(case.recompute)
    return generate(model, case.ids, mode=mode, recompute=recompute, n_tokens=N_TOKENS)


@functools.cache
def _loaded(folder: Path) -> Model:
    torch.set_num_threads(1)
    return load(folder)


def wanted_of(folder: Path, case: Case, mode: Mode) -> list[int]:
    """`wanted`, in a process of its own."""
    return wanted(_loaded(folder), case, mode)


def first_logits(folder: Path, case: Case, mode: Mode) -> torch.Tensor:
    """What the oracle chooses its first token from, in a process of its own."""
    model = _loaded(folder)
    recompute = case.recompute if case.recompute == "all" else frozenset(case.recompute)
    planned = plan(case.ids, mode=mode, seam=8, min_tokens=6, recompute=recompute)
    if len(case.ids) == 1:
        planned = [Piece(tuple(case.ids[0]), 0, len(case.ids[0]))]
    return forward(model, Stream(model), planned, mode)


def asked(engine: Engine, case: Case) -> list[int]:
    """What the engine answers."""
    recompute = case.recompute if case.recompute == "all" else list(case.recompute)
    if not case.streams:
        answer = engine.generate(case.text, n_tokens=N_TOKENS, pic={"recompute": recompute})
        return answer["output_ids"]
    sampling: dict[str, Any] = {"temperature": 0, "max_new_tokens": N_TOKENS}
    sampling["custom_params"] = {"pic": {"recompute": recompute}}
    body = {"text": case.text, "sampling_params": sampling}
    return engine.pieces("/generate", body)[-1]["output_ids"]


def answers(engine: Engine, drawn: Sequence[Case]) -> list[list[int]]:
    """The first two thirds one at a time; then, nothing cached any more, the rest at once."""
    n_single = len(drawn) * 2 // 3
    single = [asked(engine, case) for case in drawn[:n_single]]
    engine.flush()
    with concurrent.futures.ThreadPoolExecutor(N_AT_ONCE) as threads:
        return single + list(threads.map(lambda case: asked(engine, case), drawn[n_single:]))
