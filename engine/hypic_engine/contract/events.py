"""What an engine tells about its cache, one JSON object a line.

``GET /pic/events?epoch=E&after=N`` answers with a `Hello` line and then events in order;
``GET /pic/segments?cursor=c`` answers with a `Page`. Encodes and decodes; keeps nothing.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import ContractError

RING_EVENTS = 65_536
ALIVE_EVERY_S = 5.0
FORGET_AFTER_S = 15.0
PAGE_ITEMS = 1_000

Tier = Literal["device", "host"]


@dataclass(frozen=True, slots=True)
class Hello:
    """First line of a stream: the engine's epoch and the sequence number that was last given."""

    epoch: str
    seq: int


@dataclass(frozen=True, slots=True)
class Item:
    """One cached segment, usable from now on.

    Attributes:
        key: the engine's own key.
        digests: request digests under which it can be reached.
        n_tokens: its length.
        bytes: what it occupies, keys and values and operators together.
        tier: where it lies.
    """

    key: str
    digests: tuple[str, ...]
    n_tokens: int
    bytes: int
    tier: Tier = "device"


@dataclass(frozen=True, slots=True)
class Stored:
    """The segment can be used from now on."""

    seq: int
    item: Item


@dataclass(frozen=True, slots=True)
class Alias:
    """A segment that is held can be reached under one more digest."""

    seq: int
    item: Item


@dataclass(frozen=True, slots=True)
class Removed:
    """The segment is gone."""

    seq: int
    key: str


@dataclass(frozen=True, slots=True)
class Cleared:
    """Everything is gone."""

    seq: int


@dataclass(frozen=True, slots=True)
class Alive:
    """Nothing happened; the engine still speaks."""

    seq: int


@dataclass(frozen=True, slots=True)
class Gap:
    """The events asked for are no longer known: read the snapshot."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a snapshot, consistent with the events up to ``seq``."""

    epoch: str
    seq: int
    items: tuple[Item, ...]
    next: str | None


Line = Hello | Stored | Alias | Removed | Cleared | Alive | Gap


def _item_fields(item: Item) -> dict[str, Any]:
    return {
        "key": item.key,
        "digests": list(item.digests),
        "n_tokens": item.n_tokens,
        "bytes": item.bytes,
        "tier": item.tier,
    }


def _fields(line: Line) -> dict[str, Any]:
    match line:
        case Hello(epoch, seq):
            return {"epoch": epoch, "seq": seq}
        case Stored(seq, item):
            return {"seq": seq, "kind": "stored", **_item_fields(item)}
        case Alias(seq, item):
            return {"seq": seq, "kind": "alias", **_item_fields(item)}
        case Removed(seq, key):
            return {"seq": seq, "kind": "removed", "key": key}
        case Cleared(seq):
            return {"seq": seq, "kind": "cleared"}
        case Alive(seq):
            return {"seq": seq, "kind": "alive"}
        case Gap():
            return {"kind": "gap"}


def encode(line: Line) -> bytes:
    """One line of the stream, newline included."""
    return json.dumps(_fields(line), separators=(",", ":")).encode() + b"\n"


def encode_page(page: Page) -> bytes:
    """The body of one snapshot page."""
    items = [_item_fields(item) for item in page.items]
    body = {"epoch": page.epoch, "seq": page.seq, "items": items, "next": page.next}
    return json.dumps(body, separators=(",", ":")).encode()


def _parsed(raw: bytes | str) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except ValueError as error:
        raise ContractError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ContractError(f"not an object: {type(value).__name__}")
    return value


def _item(fields: dict[str, Any]) -> Item:
    tier: Tier = "host" if fields.get("tier") == "host" else "device"
    digests = tuple(str(digest) for digest in fields["digests"])
    return Item(str(fields["key"]), digests, int(fields["n_tokens"]), int(fields["bytes"]), tier)


def _line(fields: dict[str, Any]) -> Line:
    match fields.get("kind"):
        case None:
            return Hello(str(fields["epoch"]), int(fields["seq"]))
        case "stored":
            return Stored(int(fields["seq"]), _item(fields))
        case "alias":
            return Alias(int(fields["seq"]), _item(fields))
        case "removed":
            return Removed(int(fields["seq"]), str(fields["key"]))
        case "cleared":
            return Cleared(int(fields["seq"]))
        case "alive":
            return Alive(int(fields["seq"]))
        case "gap":
            return Gap()
        case other:
            raise ContractError(f"unknown kind {other!r}")


def decode(raw: bytes | str) -> Line:
    """The line that `encode` wrote.

    Raises:
        ContractError: not JSON, a field is missing or of another type, or an unknown kind.
    """
    fields = _parsed(raw)
    try:
        return _line(fields)
    except (KeyError, TypeError, ValueError) as error:
        raise ContractError(f"bad field: {error!r}") from error


def decode_page(raw: bytes | str) -> Page:
    """The page that `encode_page` wrote.

    Raises:
        ContractError: as for `decode`.
    """
    fields = _parsed(raw)
    try:
        items = tuple(_item(item) for item in fields["items"])
        cursor = fields["next"]
        return Page(
            str(fields["epoch"]),
            int(fields["seq"]),
            items,
            None if cursor is None else str(cursor),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ContractError(f"bad field: {error!r}") from error
