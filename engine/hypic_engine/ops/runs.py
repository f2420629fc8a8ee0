"""Which tokens and cached segments the walks of a batch go through; holds neither."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Runs:
    """Index tensors on the device; a kernel reads them and never waits for the host.

    A walk takes one state through runs of tokens, a cached segment after each. Runs may be empty,
    so that these tensors may be longer than what is in them.

    Attributes:
        first: int32 [W + 1]; walk i goes through the runs [first[i], first[i + 1]).
        starts: int32 [R], where each run begins on the batch's token axis.
        ends: int32 [R], where it ends.
        segments: int32 [R], slot of the segment after the run; -1 where there is none.
        lengths: int32 [R], tokens of that segment over which a state decays.
        deltas: int64 [R], by how much it stands later than where it was computed; not negative.
    """

    first: Tensor
    starts: Tensor
    ends: Tensor
    segments: Tensor
    lengths: Tensor
    deltas: Tensor

    def __len__(self) -> int:
        n_walks: int = self.first.shape[0] - 1
        return n_walks

    def __iter__(self) -> Iterator[list[tuple[int, int, int, int, int]]]:
        """For references: each walk's runs as (start, end, segment, length, delta)."""
        columns = (self.starts, self.ends, self.segments, self.lengths, self.deltas)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        for start, end in pairwise(self.first.tolist()):
            yield rows[start:end]
