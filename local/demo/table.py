"""What the demo found, as a table, one verdict and one last line.

Pure: rows in, text out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

WANTED_SHARE = 0.9
HEADINGS = ("order", "document tokens from the cache", "first token", "engine", "answer")


@dataclass(frozen=True, slots=True)
class Row:
    """One question: what was found for it, and whether an empty cache says the same.

    Attributes:
        order: letters of the documents in the prompt.
        n_document_tokens: tokens of those documents.
        n_cached_tokens: tokens taken from the cache, by the engine's own count.
        first_token_s: from sending the request to the first token.
        engine: the pod that answered.
        difference: how the answer differs from that of an empty cache; empty when it is equal.
    """

    order: str
    n_document_tokens: int
    n_cached_tokens: int
    first_token_s: float
    engine: str
    difference: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The numbers of the last line; C, D and N as in the README."""

    n_cached_tokens: int
    n_document_tokens: int
    n_equal: int
    n_answers: int

    @property
    def ok(self) -> bool:
        """Whether enough was cached and every answer was equal."""
        enough = self.n_cached_tokens >= WANTED_SHARE * self.n_document_tokens
        return enough and self.n_document_tokens > 0 and self.n_equal == self.n_answers > 0

    @property
    def line(self) -> str:
        """The demo's last line."""
        return (
            f"demo: {'ok' if self.ok else 'failed'}, cached {self.n_cached_tokens} of "
            f"{self.n_document_tokens} document tokens after the first order, "
            f"{self.n_equal} of {self.n_answers} answers equal"
        )


def verdict(rows: Sequence[Row]) -> Verdict:
    """Counts over all rows; tokens are counted after the first order, which filled the cache."""
    later = rows[1:]
    return Verdict(
        n_cached_tokens=sum(row.n_cached_tokens for row in later),
        n_document_tokens=sum(row.n_document_tokens for row in later),
        n_equal=sum(not row.difference for row in rows),
        n_answers=len(rows),
    )


def _cells(row: Row) -> tuple[str, ...]:
    share = row.n_cached_tokens / row.n_document_tokens
    return (
        " ".join(row.order),
        f"{row.n_cached_tokens} of {row.n_document_tokens} ({share:.0%})",
        f"{row.first_token_s:.2f} s",
        row.engine,
        row.difference or "equal",
    )


def table(rows: Sequence[Row]) -> str:
    """The rows under headings, in columns."""
    lines = [HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    padded = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )
    return "\n".join(f"  {line}".rstrip() for line in padded)


def difference(ids: Sequence[int], empty_ids: Sequence[int], *, n_cached_when_empty: int) -> str:
    """In words how an answer differs from the empty cache's; empty when the tokens are equal."""
    if n_cached_when_empty:
        return f"not compared: the cache was not empty ({n_cached_when_empty} tokens found)"
    if list(ids) == list(empty_ids):
        return ""
    pairs = zip(ids, empty_ids, strict=False)
    same = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(ids), len(empty_ids)))
    return f"differs from token {same + 1}"
