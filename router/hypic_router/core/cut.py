"""Cuts the prompts of a request body into pieces, and names those that an engine may hold.

One function an endpoint. Does not validate what engines validate: a value of an unexpected type
is a piece without a name.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hypic_engine.contract import chat as chats
from hypic_engine.contract.request import SegmentOptions
from hypic_engine.contract.segments import head_digest, ids_digest, split, text_digest
from hypic_engine.errors import RequestError

BEGINNING_CHARS = 1_024
BEGINNING_IDS = 256


class NoPromptError(RequestError):
    """There is nothing to generate from, which an engine says better than the router can."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a prompt that an engine may hold.

    Attributes:
        digest: its name, shared with the engines.
        n_bytes: length of its text; 0 for ids.
        n_ids: number of its token ids; 0 for text.
    """

    digest: str
    n_bytes: int = 0
    n_ids: int = 0


@dataclass(frozen=True, slots=True)
class Cut:
    """One prompt of a request.

    Attributes:
        pieces: everything before the query, in order; ``None`` where the router cannot know the
            content, because a chat template adds to it.
        n_bytes: length of its text, query included.
        n_ids: number of its token ids, query included.
        beginning: how it starts; equal beginnings share a prefix.
    """

    pieces: tuple[Segment | None, ...] = ()
    n_bytes: int = 0
    n_ids: int = 0
    beginning: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """What names of segments depend on, beside their content.

    ``salt`` is ``None`` when the request's salt or adapter has a form that cannot be named here.
    """

    model: str
    separator: str
    adapter: str
    salt: str | None

    def text(self, text: str) -> Segment | None:
        """The segment that this text is."""
        if self.salt is None:
            return None
        digest = text_digest(text, model=self.model, adapter=self.adapter, salt=self.salt)
        return Segment(digest, n_bytes=_n_bytes(text))

    def head(self, content: bytes) -> Segment | None:
        """The segment that a chat's head is; the length of its text is the template's secret."""
        if self.salt is None:
            return None
        digest = head_digest(content, model=self.model, adapter=self.adapter, salt=self.salt)
        return Segment(digest, n_bytes=len(content))

    def ids(self, ids: Sequence[int]) -> Segment | None:
        """The segment that these token ids are."""
        if self.salt is None:
            return None
        try:
            digest = ids_digest(ids, model=self.model, adapter=self.adapter, salt=self.salt)
        except struct.error:
            return None
        return Segment(digest, n_ids=len(ids))


def prompts(
    value: object, field: str, scope: Scope, options: Sequence[SegmentOptions]
) -> list[Cut]:
    """The prompts in a text or ids field, which holds one of them or a list.

    Args:
        value: the field as sent.
        field: its name, for messages.
        scope: what names depend on.
        options: one for all prompts, or one for each.

    Raises:
        NoPromptError: there is nothing in it.
    """
    if value is None or value in ("", []):
        raise NoPromptError(field, "is empty: there is no prompt")
    if isinstance(value, str):
        return [_text(value, field, scope)]
    if not isinstance(value, list):
        return [Cut()]
    if isinstance(value[0], int):
        return [_ids(value, scope, options[0])]
    return [
        _text(item, field, scope)
        if isinstance(item, str) and item
        else _ids(item, scope, options[min(i, len(options) - 1)])
        if isinstance(item, list)
        else Cut()
        for i, item in enumerate(value)
    ]


def chat(fields: Mapping[str, Any], scope: Scope) -> list[Cut]:
    """The one prompt that chat messages make.

    Raises:
        NoPromptError: there are none.
        RequestError: a mark is malformed.
    """
    messages = fields.get("messages")
    if messages is None or messages == []:
        raise NoPromptError("messages", "is empty: there is no prompt")
    if not isinstance(messages, list):
        return [Cut()]
    texts = list(chats.texts(messages))
    cut = chats.cut(fields, scope.separator)
    head = () if cut.head is None else (scope.head(cut.head),)
    pieces = tuple(None if piece is None else scope.text(piece) for piece in cut.pieces)
    n_bytes = sum(_n_bytes(found.text) for found in texts)
    return [Cut((*head, *pieces), n_bytes, beginning=_beginning(messages, texts))]


def _beginning(messages: Sequence[object], texts: Sequence[chats.Text]) -> str:
    """What all turns of a conversation share: everything up to its first user message."""
    roles = [one.get("role") if isinstance(one, Mapping) else None for one in messages]
    last = roles.index("user") if "user" in roles else len(roles)
    return "\n".join(found.text[:BEGINNING_CHARS] for found in texts if found.message <= last)


def _n_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _text(text: str, field: str, scope: Scope) -> Cut:
    pieces = split(text, scope.separator)
    if not pieces:
        raise NoPromptError(field, "holds only separators: there is no prompt")
    named = tuple(scope.text(piece) for piece in pieces[:-1])
    return Cut(named, _n_bytes(text), beginning=text[:BEGINNING_CHARS])


def _ids(ids: list[Any], scope: Scope, options: SegmentOptions) -> Cut:
    ends = [0, *(end for end in options.segment_ends or () if 0 < end < len(ids))]
    pieces = tuple(scope.ids(ids[start:end]) for start, end in pairwise(ends))
    return Cut(pieces, n_ids=len(ids), beginning=repr(ids[:BEGINNING_IDS]))
