"""From the requests of a prefill batch to its plan: spans on the host, once a batch, then tensors.

Makes no decision either: layouts say what is computed, entries where the rest lies.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ...core.layout import Layout
from ...ops.runs import Runs
from ..prompts import Capture, Prompt
from ..settings import Mode
from ..spans import positions, repeated
from .plan import ForwardPlan, Kept, Moves


@dataclass(slots=True)
class _Draft:
    """Host lists that become the plan, row by row."""

    device: Any
    n_tokens: int = 0
    virtual: list[tuple[int, int, int]] = field(default_factory=list)
    tails: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    final: list[tuple[int, int]] = field(default_factory=list)
    walk_rows: list[int] = field(default_factory=list)
    walk_ends: list[int] = field(default_factory=list)
    runs: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    kept: list[tuple[int, int]] = field(default_factory=list)
    sources: list[Tensor] = field(default_factory=list)
    targets: list[Tensor] = field(default_factory=list)
    deltas: list[int] = field(default_factory=list)
    continued: list[int] = field(default_factory=list)

    def add_plain(self, row: int, start: int, end: int, capture: Capture | None) -> None:
        first = self.n_tokens
        self._run(row, start, end, tail=0, continues=start > 0)
        self._end_row(first)
        if capture is not None:
            self.spans.append((first + capture.seam, self.n_tokens))
            self.kept.append((self.last[-1], capture.operator))

    def add_prompt(self, row: int, layout: Layout, prompt: Prompt, mode: Mode) -> None:
        tail = 0
        for i, (run, interior, entry) in enumerate(
            zip(layout.runs[:-1], layout.interiors, prompt.entries, strict=True)
        ):
            start, delta = self.n_tokens, interior.segment.start if mode.moves_keys else 0
            self._run(row, *run, tail=tail)
            tail = entry.operator
            decays_over = interior.length if mode.composes else 0
            self.runs.append((start, self.n_tokens, tail, decays_over, delta))
            if prompt.moves[i]:
                self.sources.append(entry.slots[interior.seam :])
                self.targets.append(prompt.copies[i].slots)
                self.deltas.append(delta)
        self.walk_rows.append(row)
        self.walk_ends.append(len(self.runs))
        last_start = self.n_tokens
        self._run(row, *layout.runs[-1], tail=tail)
        self._end_row(last_start)

    def _run(self, row: int, start: int, end: int, *, tail: int, continues: bool = False) -> None:
        if end > start:
            self.n_tokens += end - start
            self.virtual.append((row, start, end))
            self.tails.append(tail)
            self.continued.append(row if continues else -1)

    def _end_row(self, last_start: int) -> None:
        self.last.append(len(self.virtual) - 1)
        self.final.append((last_start, self.n_tokens))

    def int32(self, values: Sequence[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int32).to(self.device, non_blocking=True)

    def int64(self, values: Sequence[int]) -> Tensor:
        return self.on_device(torch.tensor(values, dtype=torch.int64))

    def on_device(self, values: Tensor) -> Tensor:
        return values.to(self.device, non_blocking=True)

    def walks(self) -> Runs | None:
        if not self.runs:
            return None
        starts, ends, segments, lengths, deltas = zip(*self.runs, strict=True)
        return Runs(
            self.int32([0, *self.walk_ends]),
            self.int32(starts),
            self.int32(ends),
            self.int32(segments),
            self.int32(lengths),
            self.int64(deltas),
        )

    def kept_rows(self) -> Kept | None:
        if not self.kept:
            return None
        virtual_rows, operators = zip(*self.kept, strict=True)
        return Kept(
            self.on_device(positions(self.spans)),
            self.int32(_offsets([end - start for start, end in self.spans])),
            self.int64(virtual_rows),
            self.int64(operators),
        )

    def moves(self) -> Moves | None:
        if not self.sources:
            return None
        delta = repeated(self.deltas, [source.numel() for source in self.sources])
        return Moves(torch.cat(self.sources), torch.cat(self.targets), self.on_device(delta))


def forward_plan(
    requests: Sequence[Any],
    prompts: Sequence[Prompt | None],
    captures: Sequence[Capture | None],
    *,
    mode: Mode,
    device: Any,
) -> ForwardPlan:
    """The plan of a batch; prompts and captures are None where a request has none."""
    draft = _Draft(device)
    for row, (req, prompt, capture) in enumerate(zip(requests, prompts, captures, strict=True)):
        if prompt is None:
            draft.add_plain(row, len(req.prefix_indices), req.fill_len, capture)
        else:
            layout = prompt.layout.until(req.fill_len)
            draft.add_prompt(row, layout, prompt, mode)
    rows, starts, ends = zip(*draft.virtual, strict=True)
    lengths = [end - start for start, end in zip(starts, ends, strict=True)]
    return ForwardPlan(
        positions=draft.on_device(positions([(start, end) for _, start, end in draft.virtual])),
        virtual_rows=draft.int64(rows),
        starts=draft.int32(starts),
        ends=draft.int64(ends),
        starts_cpu=tuple(starts),
        ends_cpu=tuple(ends),
        offsets=draft.int32(_offsets(lengths)),
        tails=draft.int64(draft.tails),
        continued=draft.int64(draft.continued),
        last=draft.int64(draft.last),
        final_tokens=draft.on_device(positions(draft.final)) if draft.runs else None,
        final_offsets=draft.int32(_offsets([end - start for start, end in draft.final])),
        walks=draft.walks(),
        walk_rows=draft.int64(draft.walk_rows),
        kept=draft.kept_rows(),
        moves=draft.moves(),
    )


def _offsets(lengths: Sequence[int]) -> list[int]:
    offsets = [0]
    for length in lengths:
        offsets.append(offsets[-1] + length)
    return offsets
