"""Hooks on what SGLang's HTTP process tells about tokens: ``cached_tokens``, ``pic`` and usage.

Passes on the scheduler's words; counts each prompt once, however many samples were asked for.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

from ...contract import details


class Cached(int):
    """A number of cached tokens that carries the details it belongs to."""

    pic: dict[str, Any] | None = None

    @classmethod
    def of(cls, n_tokens: int, pic: dict[str, Any] | None) -> "Cached":
        """The number with its details."""
        cached = cls(n_tokens)
        cached.pic = pic
        return cached


class Usage:
    """Hooks on ``TokenizerManager`` and ``UsageProcessor``."""

    def lift(
        self,
        original: Callable[..., AsyncIterator[Any]],
        manager: Any,
        obj: Any,
        *args: Any,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """Around ``TokenizerManager._wait_one_response``: our details become ``meta_info.pic``."""
        return _lifted(original(manager, obj, *args, **kwargs), obj)

    def of_answer(
        self,
        usage: Any,
        responses: Sequence[Mapping[str, Any]],
        n_choices: int = 1,
        enable_cache_report: bool = False,  # noqa: FBT001, FBT002 - the host's signature
        **_: Any,
    ) -> Any:
        """After ``UsageProcessor.calculate_response_usage``."""
        if not enable_cache_report:
            return usage
        prompts = [response["meta_info"] for response in responses[::n_choices]]
        return _reported(usage, (meta.get("cached_tokens", 0) for meta in prompts))

    def of_stream(
        self,
        usage: Any,
        *_: Any,
        cached_tokens: Mapping[int, int],
        n_choices: int,
        enable_cache_report: bool = False,
        **__: Any,
    ) -> Any:
        """After ``UsageProcessor.calculate_streaming_usage``."""
        if not enable_cache_report:
            return usage
        return _reported(usage, (n for i, n in cached_tokens.items() if i % n_choices == 0))


def open_models() -> None:
    """Let the usage in SGLang's answers carry a field more."""
    from sglang.srt.entrypoints.openai import protocol  # noqa: PLC0415 - heavy, and only here

    protocol.UsageInfo.model_config["extra"] = "allow"
    for model in (
        protocol.UsageInfo,
        protocol.ChatCompletionResponse,
        protocol.ChatCompletionStreamResponse,
        protocol.CompletionResponse,
        protocol.CompletionStreamResponse,
    ):
        model.model_rebuild(force=True)


def _reported(usage: Any, cached: Iterable[int]) -> Any:
    """Cached tokens as a number even when there are none, and the details where there are any."""
    from sglang.srt.entrypoints.openai import protocol  # noqa: PLC0415

    prompts = list(cached)
    if usage.prompt_tokens_details is None:
        usage.prompt_tokens_details = protocol.PromptTokensDetails(cached_tokens=0)
    told = [pic for n in prompts if (pic := getattr(n, "pic", None)) is not None]
    if told:
        usage.pic = details.of_batch(told)
    return usage


async def _lifted(responses: AsyncIterator[Any], obj: Any) -> AsyncIterator[Any]:
    """The first answer to a prompt tells what was cached before it; its samples repeat that.

    SGLang prefills a prompt with n samples once more, before all of them, so that each sample finds
    what the prompt itself left.
    """
    told: list[Cached] = getattr(obj, "hypic_told", [])
    async for response in responses:
        meta = response.get("meta_info") if isinstance(response, dict) else None
        if meta and "cached_tokens" in meta:
            given = dict(meta.get("cached_tokens_details") or {})
            pic = given.pop("pic", None)
            if not told:
                told.append(Cached.of(meta["cached_tokens"], pic))
            meta["cached_tokens"] = told[0]
            if told[0].pic is not None:
                meta["cached_tokens_details"], meta["pic"] = given or None, told[0].pic
        yield response
