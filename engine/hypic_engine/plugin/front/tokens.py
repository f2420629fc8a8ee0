"""The tokenizer of SGLang's HTTP process, made to cut: each piece of a prompt is tokenized alone.

Separators and marks never become tokens. Token ids of segments are remembered by the digest of
their bytes, since tokenizing a long document takes as long as reusing it. Decides nothing about
what is cached.
"""

import hashlib
import secrets
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

# Four bytes each: 32 MiB.
MAX_REMEMBERED_IDS = 8 << 20
_KEY_BYTES = 16

# The salt of the request being tokenized; None while it is not known, and nothing is remembered.
partition: ContextVar[str | None] = ContextVar("hypic_partition", default=None)


class Tokenizer(Protocol):
    """What is used of the host's tokenizer."""

    def __call__(self, text: Any, *args: Any, **kwargs: Any) -> Any:
        """An encoding with ``input_ids``, one or a list of them as ``text`` is."""

    def encode(self, text: str, **kwargs: Any) -> list[int]:
        """Token ids of one text."""


class PieceIds(list[int]):
    """Token ids of a prompt that was cut; SGLang hands it on as the list that it is.

    Attributes:
        texts: the pieces as sent; those without a token are left out.
        ends: where each piece but the last ends.
        has_head: whether the first piece lies before the first cut.
    """

    def __init__(
        self, ids: Iterable[int], *, texts: Sequence[str], ends: Sequence[int], has_head: bool
    ) -> None:
        super().__init__(ids)
        self.texts, self.ends, self.has_head = tuple(texts), tuple(ends), has_head

    @classmethod
    def of(cls, pieces: Iterable[tuple[str, Sequence[int]]], *, has_head: bool) -> "PieceIds":
        """Texts and their ids, joined."""
        ids: list[int] = []
        texts: list[str] = []
        ends: list[int] = []
        for text, own in pieces:
            if own:
                texts.append(text)
                ids.extend(own)
                ends.append(len(ids))
        return cls(ids, texts=texts, ends=ends[:-1], has_head=has_head)

    def __add__(self, more: Any) -> "PieceIds":  # type: ignore[override]
        """With more at the end of the query: how SGLang continues an assistant's message."""
        return PieceIds([*self, *more], texts=self.texts, ends=self.ends, has_head=self.has_head)


class Marks:
    """Strings that carry the bounds of marked parts through a chat template.

    They are drawn anew in every process, so that nobody can send one, and are made of letters and
    digits, which no template trims or escapes.
    """

    def __init__(self) -> None:
        secret = secrets.token_hex(16)
        self._open, self._close = f"hypic{secret}open", f"hypic{secret}close"

    def around(self, text: str) -> str:
        """The text of a marked part, as the template gets it."""
        return f"{self._open}{text}{self._close}"

    def within(self, rendered: str) -> bool:
        """Whether a rendered prompt has marked parts."""
        return self._open in rendered

    def pieces(self, rendered: str) -> list[str]:
        """What lies before, in, between and after marked parts."""
        return rendered.replace(self._close, self._open).split(self._open)


class Remembered:
    """Token ids by the digest of their text; the least recently used are forgotten first."""

    def __init__(self, max_ids: int = MAX_REMEMBERED_IDS) -> None:
        self._max_ids = max_ids
        self._ids: OrderedDict[bytes, array[int]] = OrderedDict()
        self.n_ids = 0

    @staticmethod
    def key(text: str, salt: str, *, bare: bool) -> bytes:
        """Names a piece.

        Args:
            text: of the piece.
            salt: of the request: how long tokenizing takes tells nobody what another salt sent.
            bare: whether it gets no special tokens; only what begins a prompt may get some.
        """
        own = salt.encode("utf-8", "surrogatepass")
        sha = hashlib.sha256(b"%d %d " % (bare, len(own)) + own)
        sha.update(text.encode("utf-8", "surrogatepass"))
        return sha.digest()[:_KEY_BYTES]

    def get(self, key: bytes) -> list[int] | None:
        """The ids under this key."""
        held = self._ids.get(key)
        if held is None:
            return None
        self._ids.move_to_end(key)
        return held.tolist()

    def put(self, key: bytes, ids: Sequence[int]) -> None:
        """Remember ids, unless they alone are too many."""
        if len(ids) > self._max_ids or key in self._ids:
            return
        self._ids[key] = array("I", ids)
        self.n_ids += len(ids)
        while self.n_ids > self._max_ids:
            self.n_ids -= len(self._ids.popitem(last=False)[1])


class CuttingTokenizer:
    """A tokenizer that cuts what it encodes, and is the host's own in everything else.

    Marked parts cut; where there are none, separators do.
    """

    _host: Tokenizer
    _separator: str
    _marks: Marks
    _remembered: Remembered

    def __init__(
        self, host: Tokenizer, *, separator: str, marks: Marks, remembered: Remembered
    ) -> None:
        own = {"_host": host, "_separator": separator, "_marks": marks, "_remembered": remembered}
        vars(self).update(own)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._host, name, value)

    def __call__(self, text: Any, *args: Any, **kwargs: Any) -> Any:
        """An encoding; the ids of each text that is cut are `PieceIds`."""
        texts = text if isinstance(text, list) else []
        if any(isinstance(one, str) and self._cut(one) is not None for one in texts):
            return {"input_ids": [self.encode(one, **kwargs) for one in texts]}
        return self._host(text, *args, **kwargs)

    def encode(self, text: str, **kwargs: Any) -> list[int]:
        """Token ids; `PieceIds` when the text is cut."""
        cut = self._cut(text)
        if cut is None:
            return self._host.encode(text, **kwargs)
        pieces = [piece for piece in cut if piece]
        rest = {**kwargs, "add_special_tokens": False}
        ids = [self._piece(piece, **(rest if n else kwargs)) for n, piece in enumerate(pieces[:-1])]
        ids += [self._host.encode(piece, **(rest if ids else kwargs)) for piece in pieces[-1:]]
        return PieceIds.of(zip(pieces, ids, strict=True), has_head=bool(cut[0]))

    def _cut(self, text: str) -> list[str] | None:
        if self._marks.within(text):
            return self._marks.pieces(text)
        return text.split(self._separator) if self._separator in text else None

    def _piece(self, text: str, **kwargs: Any) -> list[int]:
        salt = partition.get()
        if salt is None:
            return self._host.encode(text, **kwargs)
        key = self._remembered.key(text, salt, bare=kwargs.get("add_special_tokens") is False)
        ids = self._remembered.get(key)
        if ids is None:
            ids = self._host.encode(text, **kwargs)
            self._remembered.put(key, ids)
        return ids
