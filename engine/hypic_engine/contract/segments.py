"""Cut a prompt into segments and name each by a digest that router and engine compute alike.

Does not tokenize, and does not know which segments are cached.

A digest is SHA-256 over length-prefixed fields, cut to 128 bits and written as 32 hex digits. Each
field is preceded by its length as a little-endian u64, so that no two field lists share an input.
"""

import hashlib
import struct
from collections.abc import Iterable, Sequence
from enum import StrEnum

CONTRACT_VERSION = "1"
DEFAULT_SEPARATOR = "<<PIC_SEP>>"
DEFAULT_MAX_SEGMENTS = 512
DIGEST_BYTES = 16


class Kind(StrEnum):
    """What the content of a digest is made of."""

    TEXT = "text"
    IDS = "ids"
    HEAD = "head"


def split(text: str, separator: str) -> list[str]:
    """The pieces of ``text`` between separators, empty ones dropped.

    The last piece is the query and is never cached as a segment; the first is the head. A text
    without separators is one piece. Superfluous separators therefore change nothing.

    Args:
        text: the prompt as sent.
        separator: non-empty; matched exactly.
    """
    return [piece for piece in text.split(separator) if piece]


def _fields_digest(fields: Iterable[bytes]) -> str:
    sha = hashlib.sha256()
    for field in fields:
        sha.update(struct.pack("<Q", len(field)))
        sha.update(field)
    return sha.digest()[:DIGEST_BYTES].hex()


def _content_digest(kind: Kind, content: bytes, *, model: str, adapter: str, salt: str) -> str:
    return _fields_digest(
        (
            CONTRACT_VERSION.encode(),
            kind.value.encode(),
            model.encode(),
            adapter.encode(),
            salt.encode(),
            content,
        )
    )


def text_digest(text: str, *, model: str, adapter: str = "", salt: str = "") -> str:
    """The request digest of a segment sent as text: 32 hex digits.

    Args:
        text: the segment as sent, without separators; UTF-8 bytes are digested.
        model: the served model name.
        adapter: name of the LoRA adapter, empty for none.
        salt: ``cache_salt`` followed by ``extra_key`` as the client sent them, empty for none.
    """
    content = text.encode("utf-8", "surrogatepass")
    return _content_digest(Kind.TEXT, content, model=model, adapter=adapter, salt=salt)


def head_digest(content: bytes, *, model: str, adapter: str = "", salt: str = "") -> str:
    """The request digest of a chat's head: 32 hex digits.

    Args:
        content: what of the body makes the head, from `chat.cut`; its text is the template's.
        model: the served model name.
        adapter: as in `text_digest`.
        salt: likewise.
    """
    return _content_digest(Kind.HEAD, content, model=model, adapter=adapter, salt=salt)


def ids_bytes(ids: Sequence[int]) -> bytes:
    """Token ids as consecutive little-endian u32."""
    return struct.pack(f"<{len(ids)}I", *ids)


def ids_digest(ids: Sequence[int], *, model: str, adapter: str = "", salt: str = "") -> str:
    """The request digest of a segment sent as token ids: 32 hex digits."""
    return _content_digest(Kind.IDS, ids_bytes(ids), model=model, adapter=adapter, salt=salt)


def entry_key(
    ids: Sequence[int], *, model_revision: str, adapter: str, salt: str, mode: str, seam: str
) -> str:
    """The engine's own key of a cached segment: everything its content is a function of.

    Args:
        ids: the segment's token ids.
        model_revision: whatever tells two sets of weights apart.
        adapter: name of the LoRA adapter, empty for none.
        salt: as in `text_digest`.
        mode: the PIC mode.
        seam: the seam setting as text; another width makes another operator.
    """
    return _fields_digest(
        (
            CONTRACT_VERSION.encode(),
            b"entry",
            model_revision.encode(),
            adapter.encode(),
            salt.encode(),
            mode.encode(),
            seam.encode(),
            ids_bytes(ids),
        )
    )


def salt_of(cache_salt: str | None, extra_key: str | None) -> str:
    """The one salt of a request: what SGLang makes of the two fields that partition its cache.

    SGLang joins ``cache_salt`` and ``extra_key`` in this order (``OpenAIServingBase``,
    ``_compute_extra_key``), and the engine sees only the result.
    """
    return (cache_salt or "") + (extra_key or "")
