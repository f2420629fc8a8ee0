"""Hooks on the tokenizer process: separators out, segment ends in, for every endpoint alike.

The separator is a special token of the tokenizer, so each piece is tokenized alone, and it never
reaches the model. Knows nothing of the cache.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from itertools import pairwise
from typing import Any

from ...contract import request as wire
from ...contract import segments
from ...core import limits
from ...errors import RequestError
from ..requests import PARAMS, Asked
from ..settings import Settings


def pieces(
    ids: Sequence[int], separator: int, ends: Sequence[int] | None
) -> tuple[list[int], list[int]]:
    """Token ids without separators, and the offsets at which segments end (the query's left out).

    Args:
        ids: of the whole prompt.
        separator: the separator's id.
        ends: offsets that the client gave; the prompt then holds no separators.

    Raises:
        RequestError: an offset lies outside the prompt, or there are offsets and separators.
    """
    if ends is not None:
        if separator in ids:
            raise RequestError(f"{wire.FIELD}.segment_ends", "does not go with separators")
        if ends and ends[-1] > len(ids):
            limit = f"{ends[-1]} lies outside the prompt of {len(ids)} tokens"
            raise RequestError(f"{wire.FIELD}.segment_ends", limit)
        return list(ids), [end for end in ends if 0 < end < len(ids)]
    kept: list[int] = []
    cuts: list[int] = []
    for token in ids:
        if token != separator:
            kept.append(token)
        elif kept and (not cuts or cuts[-1] != len(kept)):
            cuts.append(len(kept))
    if cuts and cuts[-1] == len(kept):
        cuts.pop()
    return kept, cuts


def _refuse_embeds(obj: Any) -> None:
    """SGLang refuses them with its radix cache, which is off here; its Qwen3.5 dies of them."""
    if getattr(obj, "input_embeds", None) is not None:
        raise RequestError("input_embeds", "cannot be combined with --pic-enable")


class Frontend:
    """Hooks on ``TokenizerManager``."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._separator = -1

    def learn(self, result: object, manager: Any, *args: object, **kwargs: object) -> None:
        """After ``TokenizerManager.__init__``: make the separator a token of its own."""
        tokenizer = manager.tokenizer
        if tokenizer is None:
            return
        separator = self._settings.separator
        tokenizer.add_tokens([separator], special_tokens=True)
        self._separator = tokenizer.convert_tokens_to_ids(separator)

    def cut(
        self, manager: Any, obj: Any, text: Any, ids: Any, *args: Any, **kwargs: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Before ``TokenizerManager._create_tokenized_object``: record and remove separators.

        Raises:
            ValueError: the request's segments cannot be; SGLang answers 400 with the message.
        """
        if not hasattr(obj, "sampling_params") or not hasattr(obj, "extra_key"):
            return None
        sampling = dict(obj.sampling_params or {})
        kept, asked = ids, Asked(enabled=False)
        try:
            _refuse_embeds(obj)
            limits.sampling(sampling, manager.model_config.vocab_size)
            if ids is not None:
                asked, kept = self._asked(manager, obj, text, list(ids))
        except RequestError as error:
            raise ValueError(str(error)) from error
        params = sampling.get("custom_params")
        sampling["custom_params"] = {**(params or {}), PARAMS: asked.to_params()}
        obj.sampling_params = sampling
        return (manager, obj, text, kept, *args), kwargs

    def _asked(self, manager: Any, obj: Any, text: Any, ids: list[int]) -> tuple[Asked, list[int]]:
        sampling = obj.sampling_params or {}
        limit = self._settings.max_segments
        options = wire.options(sampling.get("custom_params"), max_segments=limit)
        kept, ends = pieces(ids, self._separator, options.segment_ends)
        if not kept:
            raise RequestError("prompt", "holds no token besides separators")
        if len(ends) + 1 > limit:
            raise RequestError(
                "prompt", f"has {len(ends) + 1} segments; at most {limit} are allowed"
            )
        by_ids = obj.text is None and options.segment_ends is not None
        limits.token_ids("input_ids", kept, manager.model_config.vocab_size)
        digests = self._digests(manager, obj, text, kept, ends, by_ids=by_ids)
        return Asked(tuple(ends), digests, options.recompute, options.enabled), kept

    def _digests(
        self, manager: Any, obj: Any, text: Any, ids: list[int], ends: list[int], *, by_ids: bool
    ) -> tuple[str, ...]:
        served = manager.served_model_name
        names = {"model": served, "adapter": "", "salt": obj.extra_key or ""}
        bounds = list(pairwise([0, *ends, len(ids)]))
        if by_ids:
            return tuple(segments.ids_digest(ids[a:b], **names) for a, b in bounds)
        if manager.tokenizer is None:
            return ()
        if isinstance(text, str):
            sent = segments.split(text, self._settings.separator)
        else:
            decode = manager.tokenizer.decode
            sent = [decode(ids[a:b], skip_special_tokens=False) for a, b in bounds]
        if len(sent) != len(bounds):
            return ()
        return tuple(segments.text_digest(piece, **names) for piece in sent)

    def lift(
        self, original: Callable[..., AsyncIterator[Any]], *args: Any, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """Around ``TokenizerManager._wait_one_response``: our details become ``meta_info.pic``."""
        return _lifted(original(*args, **kwargs))

    def forget(
        self, original: Callable[..., AsyncIterator[Any]], manager: Any, obj: Any, *args: Any
    ) -> AsyncIterator[Any]:
        """Around ``TokenizerManager._handle_batch_request``: no state stays behind.

        SGLang 0.5.14 keeps n - 1 states of a prompt with n samples, and waits for them at its end.
        """
        return _forgotten(original(manager, obj, *args), manager, obj)


async def _forgotten(responses: AsyncIterator[Any], manager: Any, obj: Any) -> AsyncIterator[Any]:
    try:
        async for response in responses:
            yield response
    finally:  # whoever wants no stream asks once and drops the generator
        if getattr(obj, "parallel_sample_num", 1) > 1:
            manager._discard_pending_req_states(obj)  # noqa: SLF001


async def _lifted(responses: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for response in responses:
        meta = response.get("meta_info") if isinstance(response, dict) else None
        details = meta.get("cached_tokens_details") if meta else None
        if meta and details and "pic" in details:
            meta["pic"] = details["pic"]
            rest = {name: value for name, value in details.items() if name != "pic"}
            meta["cached_tokens_details"] = rest
        yield response
