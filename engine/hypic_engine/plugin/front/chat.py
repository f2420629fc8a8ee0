"""Hooks on SGLang's OpenAI-compatible endpoints, before a chat becomes text.

Marked text parts get marks that the chat template carries along; the tokenizer cuts there. Reads
the raw body, because SGLang's own model of a text part drops ``cache_control``.
"""

import json
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from ...contract import chat, segments
from ...errors import RequestError
from . import tokens

# What of the body makes the head of the chat that is being answered; None for anything else.
head: ContextVar[bytes | None] = ContextVar("hypic_head", default=None)


class Chat:
    """Hooks on ``OpenAIServingBase``."""

    def __init__(self, *, separator: str, marks: tokens.Marks) -> None:
        self._separator = separator
        self._marks = marks

    async def handle(
        self,
        original: Callable[..., Awaitable[Any]],
        serving: Any,
        request: Any,
        raw_request: Any,
    ) -> Any:
        """Around ``OpenAIServingBase.handle_request``."""
        try:
            salt = _salt(request)
            content = await self._head(request, raw_request)
        except RequestError as error:
            return serving.create_error_response(str(error), param=error.field)
        of_head, of_salt = head.set(content), tokens.partition.set(salt)
        try:
            return await original(serving, request, raw_request)
        finally:
            head.reset(of_head)
            tokens.partition.reset(of_salt)

    async def _head(self, request: Any, raw_request: Any) -> bytes | None:
        if raw_request is None or not hasattr(request, "messages"):
            return None
        fields = json.loads(await raw_request.body())
        for text in chat.texts(fields.get("messages")):
            if text.marked:
                part = request.messages[text.message].content[text.part]
                part.text = self._marks.around(part.text)
        return chat.cut(fields, self._separator).head


def _salt(request: Any) -> str:
    given = [getattr(request, name, None) for name in ("cache_salt", "extra_key")]
    for name, value in zip(("cache_salt", "extra_key"), given, strict=True):
        if value and not isinstance(value, str):
            raise RequestError(name, f"must be a string, got {type(value).__name__}")
    return segments.salt_of(*given)
