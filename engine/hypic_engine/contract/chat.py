"""Where a chat is cut, read from its raw body, which router and engine see alike.

Knows neither the chat template nor its text: a piece that template text joins has no content here.

A text part with ``cache_control`` is one segment. Where a chat has such parts, separators are plain
text; where it has none, separators in its messages cut. What comes before the first cut is the
head; its content here is the part of the body that makes its text.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import RequestError

MARK = "cache_control"
# Beside messages, these decide what a chat template writes before the first of them.
HEAD_FIELDS = ("chat_template_kwargs", "reasoning_effort", "tool_choice", "tools")


@dataclass(frozen=True, slots=True)
class Text:
    """One text of a chat: ``messages[message].content``, or its part with this index."""

    message: int
    part: int | None
    text: str
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """A chat in pieces.

    Attributes:
        head: content of a head's digest; ``None`` when nothing cuts the chat.
        pieces: what lies between head and query, in order; ``None`` where template text joins in.
    """

    head: bytes | None = None
    pieces: tuple[str | None, ...] = ()


def texts(messages: object) -> Iterator[Text]:
    """All texts of the messages, in order; whatever is malformed is left out.

    Raises:
        RequestError: a mark is no object.
    """
    for m, message in enumerate(messages if isinstance(messages, list) else ()):
        content = message.get("content") if isinstance(message, Mapping) else None
        if isinstance(content, str):
            yield Text(m, None, content)
        for p, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, Mapping) and isinstance(part.get("text"), str):
                yield Text(m, p, part["text"], _is_marked(part, f"messages[{m}].content[{p}]"))


def _is_marked(part: Mapping[str, Any], field: str) -> bool:
    mark = part.get(MARK)
    if mark is not None and not isinstance(mark, Mapping):
        raise RequestError(f"{field}.{MARK}", f"must be an object, got {type(mark).__name__}")
    return mark is not None and part.get("type") == "text"


def cut(fields: Mapping[str, Any], separator: str) -> Cut:
    """The pieces of a chat.

    Args:
        fields: the request's body.
        separator: as both sides were started with.

    Raises:
        RequestError: a mark is no object.
    """
    found = list(texts(fields.get("messages")))
    if any(text.marked for text in found):
        return _cut_at_marks(fields, found)
    return _cut_at_separators(fields, found, separator)


def _cut_at_marks(fields: Mapping[str, Any], found: Sequence[Text]) -> Cut:
    pieces: list[str | None] = []
    last: Text | None = None
    between = ""
    for text in found:
        if not text.marked:
            between += text.text
            continue
        if last is not None and last.message != text.message:
            pieces.append(None)
        elif last is not None and between:
            pieces.append(between)
        if text.text:
            pieces.append(text.text)
        last, between = text, ""
    first = next(text for text in found if text.marked)
    return Cut(_head(fields, first, before=None), tuple(pieces))


def _cut_at_separators(fields: Mapping[str, Any], found: Sequence[Text], separator: str) -> Cut:
    pieces: list[str | None] = []
    head: bytes | None = None
    for text in found:
        before, *after = text.text.split(separator)
        if not after:
            continue
        if head is None:
            head = _head(fields, text, before=before)
        else:
            pieces.append(None)
        pieces.extend(piece for piece in after[:-1] if piece)
    return Cut(head, tuple(pieces))


def _head(fields: Mapping[str, Any], text: Text, *, before: str | None) -> bytes:
    """What precedes ``text``, or ``before`` within it, as canonical JSON."""
    messages = fields["messages"]
    own = messages[text.message]
    content: Any = before or ""
    if text.part is not None:
        content = list(own["content"][: text.part])
        if before:
            content.append({"type": "text", "text": before})
    shown = {name: fields[name] for name in HEAD_FIELDS if fields.get(name) is not None}
    shown["messages"] = [*messages[: text.message], {**own, "content": content}]
    return json.dumps(shown, sort_keys=True, separators=(",", ":")).encode()
