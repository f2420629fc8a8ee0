"""One prefill batch as index tensors: what is moved, in which order states are built, what is kept.

Derived once a batch on the host; the forward pass makes no decision. Rows are SGLang's requests,
virtual rows are their runs: each run is one sequence for the stock attention and convolution
kernels, with the same row of the token table and its true prefix.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ...core.layout import Layout
from ..requests import Capture, Prompt
from ..settings import Mode


@dataclass(frozen=True, slots=True)
class Walk:
    """The part of one row that lies before its last run.

    Attributes:
        row: index of the request in the batch.
        tokens: (start, end) on the batch's token axis.
        run_offsets: int32 [runs + 1], from 0.
        operators: int32 [runs], the operator slot after each run.
        lengths: int32 [runs], tokens of the segment's interior; 0 where states are only summed.
        deltas: int64 [runs], by how much the segment stands later than where it was computed; 0
            where positions are left alone.
    """

    row: int
    tokens: tuple[int, int]
    run_offsets: Tensor
    operators: Tensor
    lengths: Tensor
    deltas: Tensor


@dataclass(frozen=True, slots=True)
class Kept:
    """A row whose operators are stored.

    Attributes:
        tokens: (start, end) on the batch's token axis.
        virtual_row: the virtual row whose last convolution state is the segment's tail.
        seam: its first tokens, which the operators leave out.
        operator: slot they go to.
    """

    tokens: tuple[int, int]
    virtual_row: int
    seam: int
    operator: int


@dataclass(frozen=True, slots=True)
class Moves:
    """Copies of cached keys and values at their true positions: [n] each, on the device."""

    source: Tensor
    target: Tensor
    delta: Tensor


@dataclass(slots=True)
class _Draft:
    """Host lists that become the plan, row by row."""

    device: Any
    positions: list[int] = field(default_factory=list)
    virtual: list[tuple[int, int, int]] = field(default_factory=list)
    tails: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    final: list[tuple[int, int]] = field(default_factory=list)
    walks: list[Walk] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    sources: list[Tensor] = field(default_factory=list)
    targets: list[Tensor] = field(default_factory=list)
    deltas: list[Tensor] = field(default_factory=list)

    def add_plain(self, row: int, n_tokens: int, capture: Capture | None) -> None:
        start = len(self.positions)
        self._run(row, 0, n_tokens, tail=0)
        self._end_row(start)
        if capture is not None:
            tokens = (start, len(self.positions))
            self.kept.append(Kept(tokens, self.last[-1], capture.seam, capture.operator))

    def add_prompt(self, row: int, layout: Layout, prompt: Prompt, mode: Mode) -> None:
        start, tail, offsets = len(self.positions), 0, [0]
        starts = [i.segment.start if mode.moves_keys else 0 for i in layout.interiors]
        lengths = [i.length if mode.composes else 0 for i in layout.interiors]
        for run, interior, entry, delta in zip(
            layout.runs[:-1], layout.interiors, prompt.entries, starts, strict=True
        ):
            self._run(row, *run, tail=tail)
            tail = entry.operator
            offsets.append(len(self.positions) - start)
            self.sources.append(entry.slots[interior.seam :])
            self.deltas.append(torch.full((interior.length,), delta, dtype=torch.int64))
        self.targets.append(prompt.moved)
        operators = [entry.operator for entry in prompt.entries]
        self.walks.append(
            Walk(
                row,
                (start, len(self.positions)),
                self.int32(offsets),
                self.int32(operators),
                self.int32(lengths),
                self.int64(starts),
            )
        )
        last_start = len(self.positions)
        self._run(row, *layout.runs[-1], tail=tail)
        self._end_row(last_start)

    def _run(self, row: int, start: int, end: int, *, tail: int) -> None:
        if end > start:
            self.positions.extend(range(start, end))
            self.virtual.append((row, start, end))
            self.tails.append(tail)

    def _end_row(self, last_start: int) -> None:
        self.last.append(len(self.virtual) - 1)
        self.final.append((last_start, len(self.positions)))

    def int32(self, values: Sequence[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int32).to(self.device, non_blocking=True)

    def int64(self, values: Sequence[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64).to(self.device, non_blocking=True)

    def moves(self) -> Moves | None:
        if not self.sources:
            return None
        delta = torch.cat(self.deltas).to(self.device, non_blocking=True)
        return Moves(torch.cat(self.sources), torch.cat(self.targets), delta)


@dataclass(frozen=True, slots=True)
class ForwardPlan:
    """A prefill batch that uses the segment cache.

    Attributes:
        positions: int64 [N], true position of each computed token.
        virtual_rows: int64 [R], row of each virtual row.
        starts: int32 [R], tokens before it.
        ends: int64 [R], its end.
        starts_cpu: the same on the host.
        ends_cpu: likewise.
        offsets: int32 [R + 1], where virtual rows lie on the token axis.
        tails: int64 [R], operator slot whose tail precedes it; 0 where nothing precedes it.
        last: int64 [B], each row's last virtual row.
        final_tokens: int64 [F], tokens of the rows' last runs, or None when those are all.
        final_offsets: int32 [B + 1], where rows lie among them.
        walks: what lies before the last runs.
        kept: rows whose operators are stored.
        moves: copies to make first, or None.
    """

    positions: Tensor
    virtual_rows: Tensor
    starts: Tensor
    ends: Tensor
    starts_cpu: tuple[int, ...]
    ends_cpu: tuple[int, ...]
    offsets: Tensor
    tails: Tensor
    last: Tensor
    final_tokens: Tensor | None
    final_offsets: Tensor
    walks: tuple[Walk, ...]
    kept: tuple[Kept, ...]
    moves: Moves | None

    @classmethod
    def of(
        cls,
        requests: Sequence[Any],
        prompts: Sequence[Prompt | None],
        captures: Sequence[Capture | None],
        *,
        mode: Mode,
        device: Any,
    ) -> "ForwardPlan":
        """The plan of a batch; prompts and captures are None where a request has none."""
        draft = _Draft(device)
        for row, (req, prompt, capture) in enumerate(zip(requests, prompts, captures, strict=True)):
            if prompt is None:
                draft.add_plain(row, req.extend_input_len, capture)
            else:
                layout = prompt.layout.until(req.fill_len)
                draft.add_prompt(row, layout, prompt, mode)
        rows, starts, ends = zip(*draft.virtual, strict=True)
        lengths = [end - start for start, end in zip(starts, ends, strict=True)]
        final = [t for start, end in draft.final for t in range(start, end)]
        return cls(
            positions=draft.int64(draft.positions),
            virtual_rows=draft.int64(rows),
            starts=draft.int32(starts),
            ends=draft.int64(ends),
            starts_cpu=tuple(starts),
            ends_cpu=tuple(ends),
            offsets=draft.int32(_offsets(lengths)),
            tails=draft.int64(draft.tails),
            last=draft.int64(draft.last),
            final_tokens=draft.int64(final) if draft.walks else None,
            final_offsets=draft.int32(_offsets([end - start for start, end in draft.final])),
            walks=tuple(draft.walks),
            kept=tuple(draft.kept),
            moves=draft.moves(),
        )

    @property
    def lengths_cpu(self) -> list[int]:
        """Tokens of each virtual row."""
        return [end - start for start, end in zip(self.starts_cpu, self.ends_cpu, strict=True)]

    def virtual_batch(self, batch: Any) -> Any:
        """SGLang's batch with each run as a sequence of its own."""
        lengths = self.lengths_cpu
        virtual = copy.copy(batch)
        virtual.batch_size = len(lengths)
        virtual.req_pool_indices = batch.req_pool_indices[self.virtual_rows]
        virtual.seq_lens = self.ends
        virtual.seq_lens_cpu = torch.tensor(self.ends_cpu, dtype=torch.int64)
        virtual.seq_lens_sum = sum(self.ends_cpu)
        virtual.orig_seq_lens = self.ends.to(torch.int32)
        virtual.extend_prefix_lens = self.starts
        virtual.extend_prefix_lens_cpu = list(self.starts_cpu)
        virtual.extend_seq_lens = self.offsets[1:] - self.offsets[:-1]
        virtual.extend_seq_lens_cpu = lengths
        virtual.extend_start_loc = self.offsets[:-1]
        return virtual


def _offsets(lengths: Sequence[int]) -> list[int]:
    offsets = [0]
    for length in lengths:
        offsets.append(offsets[-1] + length)
    return offsets
