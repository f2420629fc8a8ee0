"""API keys from a file or a mounted Secret, read again whenever they change.

A key is a line of the file, or of a file in the folder; empty lines and those with ``#`` first are
none. Keys are kept as digests and never shown.
"""

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Iterable
from pathlib import Path

LOOK_EVERY_S = 1.0

log = logging.getLogger(__name__)


class Keys:
    """The keys that are valid now.

    Args:
        path: the file or folder.
        more: digests in hex of keys that are always valid.
    """

    def __init__(self, path: str, *, more: Iterable[str] = ()) -> None:
        self._path = Path(path)
        self._more = frozenset(bytes.fromhex(digest) for digest in more)
        self._digests: frozenset[bytes] | None = None

    async def follow(self) -> None:
        """Keeps up with the files until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            self.look()

    def look(self) -> None:
        """Takes the keys as they are now; those known before stay while they cannot be read."""
        try:
            found = frozenset(_digest(key) for key in _keys(self._path))
        except (OSError, UnicodeDecodeError) as error:
            if self._digests is None:
                log.error("Could not read API keys", extra={"detail": type(error).__name__})  # noqa: TRY400
                self._digests = frozenset()
            return
        if found != self._digests:
            log.info("Read API keys", extra={"path": str(self._path), "keys": len(found)})
            self._digests = found

    def admit(self, authorization: str) -> bool:
        """Whether the value of an ``Authorization`` header holds a valid key.

        Takes as long for a key that is nearly right as for one that is not.
        """
        scheme, _, key = authorization.partition(" ")
        given, known = _digest(key.strip()), False
        for digest in self._more | (self._digests or frozenset()):
            known |= hmac.compare_digest(given, digest)
        return known and scheme.lower() == "bearer"


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def _keys(path: Path) -> list[str]:
    """The lines of a file, or of the files in a folder; a Secret's own dot files are links."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    texts = [one.read_text("utf-8") for one in files if not one.name.startswith(".")]
    lines = (line.strip() for text in texts for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]
