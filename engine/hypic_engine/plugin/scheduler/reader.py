"""Turns SGLang's requests into prompts of segments, under one server's settings.

Reads what the frontend sent along; allocates nothing.
"""

from collections.abc import Sequence
from typing import Any

from ...contract import segments as wire
from ...core.layout import Segment, layout, segments
from ..asked import asked_of
from ..prompts import Prompt, Wanted
from ..settings import Settings


class Reader:
    """Turns requests into prompts under one server's settings."""

    def __init__(self, settings: Settings, *, model: str) -> None:
        self._settings = settings
        self._model = model
        self._n_updates = 0

    def renew(self) -> None:
        """The weights are others now: no key from before is given again."""
        self._n_updates += 1

    def wanted(self, ids: Sequence[int], segment: Segment, *, salt: str, digest: str) -> Wanted:
        """The segment with its key; ``ids`` are those of the whole prompt."""
        own = ids[segment.start : segment.end]
        key = wire.entry_key(
            own,
            model_revision=f"{self._model}+{self._n_updates}",
            adapter="",
            salt=salt,
            mode=self._settings.mode.value,
            seam=str(self._settings.seam),
        )
        return Wanted(segment, key, wire.ids_bytes(own), digest, salt)

    @staticmethod
    def is_plain(request: Any) -> bool:
        """Whether it has no segments, or asks that they be no concern of ours."""
        asked = asked_of(request)
        return not asked.enabled or not asked.ends

    @staticmethod
    def n_segments(request: Any) -> int:
        """Segments before the query; 0 when it asks that they be no concern of ours."""
        asked = asked_of(request)
        return len(asked.ends) if asked.enabled else 0

    def prompt(self, request: Any) -> Prompt | None:
        """The request's prompt, or None when it has nothing to take from the cache."""
        asked = asked_of(request)
        if not asked.enabled or not asked.ends or asked.recompute == "all":
            return None
        if request.session is not None:  # its ids begin with those of earlier turns
            return None
        cut = segments(asked.ends, len(request.origin_input_ids))
        recompute = asked.recompute
        plan = layout(
            cut,
            seam=self._settings.seam,
            min_tokens=self._settings.min_tokens,
            in_place=lambda index: index in recompute,
        )
        if not plan.interiors:
            return None
        digests = [*asked.digests, *[""] * len(cut)]
        wanted = tuple(
            self.wanted(
                request.origin_input_ids,
                interior.segment,
                salt=request.extra_key or "",
                digest=digests[interior.segment.index],
            )
            for interior in plan.interiors
        )
        return Prompt(plan, wanted, n_segments=len(cut) - 1)

    def plain(self, request: Any) -> Wanted | None:
        """A prompt without segments as the one segment that it is, or None when not to be kept."""
        asked = asked_of(request)
        n_tokens = len(request.origin_input_ids)
        settings = self._settings
        if not asked.enabled or asked.ends or not settings.store_plain:
            return None
        if request.session is not None:
            return None
        segment = Segment(0, 0, n_tokens)
        digest = asked.digests[0] if asked.digests else ""
        salt = request.extra_key or ""
        return self.wanted(request.origin_input_ids, segment, salt=salt, digest=digest)
