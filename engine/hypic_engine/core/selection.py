"""Which cached segments somebody means: by key, by request digest, by salt, or all of them.

Reads what was sent and names the field at fault; finds nothing itself.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ..contract.warm import LONGEST_SALT
from ..errors import RequestError

MOST_NAMES = 1_000
LONGEST_NAME = 64
FIELDS = ("keys", "digests", "salt", "all")


@dataclass(frozen=True, slots=True)
class Selection:
    """Segments that fit any of these.

    Attributes:
        keys: the engine's keys, as events tell them.
        digests: request digests, as a client or router computes them.
        salt: ``cache_salt`` followed by ``extra_key``; ``None`` names none, empty those without.
        everything: all there are.
    """

    keys: frozenset[str] = frozenset()
    digests: frozenset[str] = frozenset()
    salt: str | None = None
    everything: bool = False

    def takes(self, *, key: str, digests: Collection[str], salt: str) -> bool:
        """Whether a segment is meant."""
        return (
            self.everything
            or key in self.keys
            or salt == self.salt
            or not self.digests.isdisjoint(digests)
        )


def _names(fields: Mapping[str, Any], field: str) -> frozenset[str]:
    names = fields.get(field, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise RequestError(field, "must be a list of strings")
    if len(names) > MOST_NAMES:
        raise RequestError(field, f"holds {len(names)} names; at most {MOST_NAMES} are allowed")
    if any(len(name) > LONGEST_NAME for name in names):
        raise RequestError(field, f"holds a name of more than {LONGEST_NAME} characters")
    return frozenset(names)


def selection(fields: object) -> Selection:
    """What the body of a request selects.

    Raises:
        RequestError: a field is unknown, of the wrong type or past its limit, or nothing is named.
    """
    if not isinstance(fields, Mapping):
        raise RequestError("body", f"must be an object with any of {', '.join(FIELDS)}")
    unknown = sorted(str(name) for name in set(fields) - set(FIELDS))
    if unknown:
        raise RequestError(unknown[0], f"is unknown; allowed are {', '.join(FIELDS)}")
    salt = fields.get("salt")
    if salt is not None and not isinstance(salt, str):
        raise RequestError("salt", "must be a string")
    if salt is not None and len(salt) > LONGEST_SALT:
        raise RequestError(
            "salt", f"has {len(salt)} characters; at most {LONGEST_SALT} are allowed"
        )
    everything = fields.get("all", False)
    if not isinstance(everything, bool):
        raise RequestError("all", "must be true or false")
    meant = Selection(_names(fields, "keys"), _names(fields, "digests"), salt, everything)
    if meant == Selection():
        raise RequestError("body", f"names nothing; give any of {', '.join(FIELDS)}")
    return meant
