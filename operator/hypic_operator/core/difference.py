"""Whether a live object already is what a manifest asks for, so that nothing need be written.

Knows no kinds. A manifest carries a fingerprint of itself in an annotation: it tells that a field
was dropped from the manifest, which a comparison of what the manifest still has cannot tell.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from . import names

Manifest = Mapping[str, Any]

# Lists that the API server merges by a key: entries of others stay beside ours.
_MERGED = {
    "containers": "name",
    "env": "name",
    "ownerReferences": "uid",
    "ports": "name",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
_QUANTITIES = {"requests", "limits", "sizeLimit"}
_SUFFIXES = {
    **{suffix: Decimal(1024) ** n for n, suffix in enumerate(("", "Ki", "Mi", "Gi", "Ti", "Pi"))},
    **{suffix: Decimal(1000) ** n for n, suffix in enumerate(("k", "M", "G", "T", "P"), 1)},
    "m": Decimal("0.001"),
}


def fingerprint(value: Any) -> str:
    """Twelve hex digits that stand for a JSON value, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def signed(manifest: Manifest) -> dict[str, Any]:
    """The manifest with its fingerprint as an annotation; one that has one already keeps it."""
    metadata = dict(manifest["metadata"])
    annotations = dict(metadata.get("annotations", {}))
    annotations.setdefault(names.ANNOTATION_APPLIED, fingerprint(manifest))
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def same_fingerprint(live: Manifest, wanted: Manifest) -> bool:
    """Whether the live object was last written from this very manifest."""
    was, now = (
        item["metadata"].get("annotations", {}).get(names.ANNOTATION_APPLIED)
        for item in (live, wanted)
    )
    return was is not None and bool(was == now)


def settled(live: Manifest, wanted: Manifest) -> bool:
    """Whether applying ``wanted`` would change nothing; fields of others do not matter."""
    return _covers(live, wanted, "")


def _covers(live: Any, wanted: Any, field: str) -> bool:
    if live == wanted:  # most of what is compared, and equality is quick
        return True
    match wanted:
        case Mapping():
            return isinstance(live, Mapping) and all(
                _field_covers(live, key, value, field if field in _QUANTITIES else key)
                for key, value in wanted.items()
            )
        case str() | bytes():
            return _same_scalar(live, wanted, field)
        case Sequence():
            listed = isinstance(live, Sequence) and not isinstance(live, str)
            return listed and _list_covers(live, wanted, field)
        case _:
            return _same_scalar(live, wanted, field)


def _field_covers(live: Mapping[str, Any], key: str, wanted: Any, field: str) -> bool:
    if key not in live:
        return wanted in (None, "", [], {}, ())  # the API server does not store what is empty
    return _covers(live[key], wanted, field)


def _list_covers(live: Sequence[Any], wanted: Sequence[Any], field: str) -> bool:
    key = _MERGED.get(field, "")
    if key and all(key in item for item in wanted):
        by_key = {entry.get(key): entry for entry in live}
        return all(_covers(by_key.get(item[key]), item, "") for item in wanted)
    pairs = zip(live, wanted, strict=False)
    return len(live) == len(wanted) and all(_covers(entry, item, "") for entry, item in pairs)


def _same_scalar(live: Any, wanted: Any, field: str) -> bool:
    if field in _QUANTITIES and live != wanted:
        amount = _amount(live)
        return amount is not None and amount == _amount(wanted)
    return bool(live == wanted)


def _amount(quantity: Any) -> Decimal | None:
    """The number that a Kubernetes quantity such as ``250m`` or ``2Gi`` stands for."""
    text = str(quantity)
    digits = text.rstrip("KMGTPikm")
    factor = _SUFFIXES.get(text[len(digits) :])
    try:
        return None if factor is None else Decimal(digits) * factor
    except InvalidOperation:
        return None
