"""The gated delta rule, and the operator by which a run of tokens acts on a state."""

from .reference import chunked, operators, recurrent, snapshots

__all__ = ["chunked", "operators", "recurrent", "snapshots"]
