"""One prefill batch as index tensors: what is moved, in which order states are built, what is kept.

`planning` derives it once a batch; the forward pass makes no decision. Rows are SGLang's requests,
virtual rows are their runs: each run is one sequence for the stock attention and convolution
kernels, with the same row of the token table and its true prefix.
"""

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...ops.runs import Runs


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows whose operators are stored; F tokens, K rows.

    Attributes:
        tokens: int64 [F], on the batch's token axis; those of seams are left out.
        offsets: int32 [K + 1], where the rows lie among the tokens.
        virtual_rows: int64 [K], whose last convolution state is the segment's tail.
        operators: int64 [K], slots that they go to.
    """

    tokens: Tensor
    offsets: Tensor
    virtual_rows: Tensor
    operators: Tensor


@dataclass(frozen=True, slots=True)
class Moves:
    """Copies of cached keys and values at their true positions: [n] each, on the device."""

    source: Tensor
    target: Tensor
    delta: Tensor


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
        tails: int64 [R], operator slot whose tail precedes it; 0 where none does.
        continued: int64 [R], the row whose prefix of SGLang's own it goes on from; -1 where none.
        last: int64 [B], each row's last virtual row.
        final_tokens: int64 [F], tokens of the rows' last runs, or None when those are all.
        final_offsets: int32 [B + 1], where rows lie among them.
        walks: what lies before the last runs, or None.
        walk_rows: int64 [W], the row of each walk.
        kept: rows whose operators are stored, or None.
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
    continued: Tensor
    last: Tensor
    final_tokens: Tensor | None
    final_offsets: Tensor
    walks: Runs | None
    walk_rows: Tensor
    kept: Kept | None
    moves: Moves | None

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

    def aim_tracking(self, linear: Any, batch: Any) -> None:
        """Let SGLang find the states that its tree wants among those of the last runs alone.

        Its metadata count the chunks of whole rows; with walks, the chunk kernel sees last runs.
        """
        tracks = getattr(linear.forward_metadata, "has_mamba_track_mask", False)
        if self.walks is None or not tracks:
            return
        seen = copy.copy(batch)
        seen.extend_seq_lens = self.final_offsets[1:] - self.final_offsets[:-1]
        metadata = linear.forward_metadata
        (
            metadata.track_ssm_h_src,
            metadata.track_ssm_h_dst,
            metadata.track_ssm_final_src,
            metadata.track_ssm_final_dst,
        ) = linear._init_track_ssm_indices(metadata.mamba_cache_indices, seen)  # noqa: SLF001
