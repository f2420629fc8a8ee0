"""Hooks on the tokenizer process: what a request says about its segments, for every endpoint alike.

The tokenizer cuts (`tokens`); here the cut is checked, named by digests and sent along to the
scheduler. Knows nothing of the cache.
"""

from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from itertools import pairwise
from typing import Any

from ...contract import request as wire
from ...contract import segments
from ...core import limits
from ...errors import RequestError
from ..asked import PARAMS, Asked
from ..settings import Settings
from . import chat, tokens

# Ids of what was sent to the scheduler, while samples of this task's request are.
_sent: ContextVar[list[str] | None] = ContextVar("sent", default=None)


class Frontend:
    """Hooks on ``TokenizerManager``."""

    def __init__(self, settings: Settings, marks: tokens.Marks) -> None:
        self._settings = settings
        self._marks = marks
        self._remembered = tokens.Remembered()

    def learn(self, result: object, manager: Any, *args: object, **kwargs: object) -> None:
        """After ``TokenizerManager.__init__``: its tokenizer cuts from now on."""
        if manager.tokenizer is not None:
            manager.tokenizer = tokens.CuttingTokenizer(
                manager.tokenizer,
                separator=self._settings.separator,
                marks=self._marks,
                remembered=self._remembered,
            )

    def admit(self, obj: Any) -> None:
        """Before ``GenerateReqInput.normalize_batch_and_arguments``.

        Raises:
            ValueError: what SGLang would make of the request cannot be.
        """
        try:
            limits.samples(obj.sampling_params)
            limits.request_ids(obj.rid)
            limits.text("text", obj.text)
        except RequestError as error:
            raise ValueError(str(error)) from error

    def enter(self, manager: Any, obj: Any) -> None:
        """Before ``TokenizerManager._tokenize_one_request``: whose text is tokenized."""
        tokens.partition.set(getattr(obj, "extra_key", None) or "")

    def cut(
        self, manager: Any, obj: Any, text: Any, ids: Any, *args: Any, **kwargs: Any
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Before ``TokenizerManager._create_tokenized_object``: record segments.

        Raises:
            ValueError: the request's segments cannot be; SGLang answers 400 with the message.
        """
        if not hasattr(obj, "sampling_params") or not hasattr(obj, "extra_key"):
            return None
        sampling = dict(obj.sampling_params or {})
        asked = Asked(enabled=False)
        try:
            limits.embeds(obj.input_embeds)
            limits.sampling(sampling, manager.model_config.vocab_size)
            if ids is not None:
                asked = self._asked(manager, obj, ids)
        except RequestError as error:
            raise ValueError(str(error)) from error
        params = sampling.get("custom_params")
        sampling["custom_params"] = {**(params or {}), PARAMS: asked.to_params()}
        obj.sampling_params = sampling
        obj.hypic_told = []  # shared by the copies that SGLang makes for each sample
        return (manager, obj, text, ids, *args), kwargs

    def _asked(self, manager: Any, obj: Any, ids: list[int]) -> Asked:
        limit = self._settings.max_segments
        custom = (obj.sampling_params or {}).get("custom_params")
        options = wire.options(custom, max_segments=limit)
        if not ids:
            raise RequestError("prompt", "holds no token besides separators")
        limits.token_ids("input_ids", ids, manager.model_config.vocab_size)
        ends = self._ends(ids, options.segment_ends, as_text=obj.input_ids is None)
        if len(ends) + 1 > limit:
            raise RequestError(
                "prompt", f"has {len(ends) + 1} segments; at most {limit} segments are allowed"
            )
        digests = self._digests(manager, obj, ids, ends)
        if options.enabled and options.recompute != "all" and ends:
            _refuse_prompt_logprobs(obj, len(ids))
        return Asked(ends, digests, options.recompute, options.enabled)

    @staticmethod
    def _ends(ids: list[int], given: tuple[int, ...] | None, *, as_text: bool) -> tuple[int, ...]:
        field = f"{wire.FIELD}.segment_ends"
        if given is None:
            ends = ids.ends if isinstance(ids, tokens.PieceIds) else ()
        elif as_text or isinstance(ids, tokens.PieceIds):
            raise RequestError(field, "counts tokens: send the prompt as ids, not as text")
        elif given and given[-1] > len(ids):
            raise RequestError(field, f"{given[-1]} lies outside the prompt of {len(ids)} tokens")
        else:
            ends = given
        return tuple(end for end in ends if 0 < end < len(ids))

    @staticmethod
    def _digests(manager: Any, obj: Any, ids: list[int], ends: tuple[int, ...]) -> tuple[str, ...]:
        names = {"model": manager.served_model_name, "adapter": "", "salt": obj.extra_key or ""}
        if isinstance(ids, tokens.PieceIds):
            digests = [segments.text_digest(piece, **names) for piece in ids.texts]
            if ids.has_head and (content := chat.head.get()) is not None:
                digests[0] = segments.head_digest(content, **names)
            return tuple(digests)
        if obj.input_ids is None:
            return (segments.text_digest(obj.text, **names),)
        bounds = pairwise([0, *ends, len(ids)])
        return tuple(segments.ids_digest(ids[a:b], **names) for a, b in bounds)

    def forget(
        self, original: Callable[..., AsyncIterator[Any]], manager: Any, obj: Any, *args: Any
    ) -> AsyncIterator[Any]:
        """Around ``TokenizerManager._handle_batch_request``: nothing of n samples stays behind.

        SGLang 0.5.14 keeps n - 1 states of a prompt with n samples, and waits for them at its end.
        When a client leaves it aborts the request's ids; samples have ids of their own and run on.
        """
        responses = original(manager, obj, *args)
        one_sample = getattr(obj, "parallel_sample_num", 1) == 1
        return responses if one_sample else _ended(responses, manager, obj)

    def note(self, manager: object, tokenized: Any) -> None:
        """Before ``TokenizerManager._send_one_request``: which ids the samples have."""
        if (sent := _sent.get()) is not None:
            sent.append(tokenized.rid)


def _refuse_prompt_logprobs(obj: Any, n_tokens: int) -> None:
    if obj.return_logprob and 0 <= obj.logprob_start_len < n_tokens:
        raise RequestError(
            "logprob_start_len",
            "tokens taken from the cache have no logprobs; to get those of this prompt, have its "
            f'segments computed in place: {wire.FIELD}.recompute "all"',
        )


async def _ended(responses: AsyncIterator[Any], manager: Any, obj: Any) -> AsyncIterator[Any]:
    sent: list[str] = []
    _sent.set(sent)
    try:
        async for response in responses:
            yield response
    finally:  # whoever wants no stream asks once and drops the generator
        for rid in sent:
            manager.abort_request(rid)  # passes over those that have ended
        manager._discard_pending_req_states(obj)  # noqa: SLF001
