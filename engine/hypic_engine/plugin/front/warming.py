"""``/pic/warm``: segments are filled before anybody asks about them.

Each is sent through SGLang as the only segment of a prompt with one more token, so that what fills
it is what fills any other; salt, queue and memory limits hold. Nothing is stored here.
"""

import asyncio
from typing import Any

from fastapi import HTTPException, Request

from ...contract import segments, warm
from ...errors import RequestError
from ..settings import Settings
from . import replies

AT_ONCE = 4


class Warming:
    """The route, and the fills that it runs behind an answer already given."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._behind: set[asyncio.Task[Any]] = set()

    async def warm(self, request: Request) -> Any:
        """Fill segments; the answer says of each what became of it."""
        if not self._settings.caches:
            return replies.off()
        try:
            asked = warm.warm(
                await replies.fields_of(request),
                max_segments=self._settings.max_segments,
                separator=self._settings.separator,
            )
        except RequestError as error:
            return replies.bad(error)
        turns = asyncio.Semaphore(AT_ONCE)
        work = asyncio.gather(*(self._fill(s, asked.salt, turns) for s in asked.segments))
        if asked.wait:
            return replies.json_of({"segments": await work})
        task = asyncio.ensure_future(work)
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)
        return replies.json_of({"accepted": len(asked.segments)}, 202)

    async def _fill(
        self, segment: str | list[int], salt: str, turns: asyncio.Semaphore
    ) -> dict[str, Any]:
        from sglang.srt.entrypoints.http_server import get_global_state  # noqa: PLC0415

        manager = get_global_state().tokenizer_manager
        async with turns:
            try:
                answer = await anext(manager.generate_request(self._prompt(segment, salt), None))
            except HTTPException as error:
                return {"stored": False, "reason": error.detail}
            except ValueError as error:
                return {"stored": False, "reason": str(error)}
        meta = answer["meta_info"]
        became = meta["pic"]["segments"]
        if not became["hit"] + became["filled"]:
            return {"stored": False, "reason": f"shorter than {self._settings.min_tokens} tokens"}
        names = {"model": manager.served_model_name, "salt": salt}
        digest = (
            segments.text_digest(segment, **names)
            if isinstance(segment, str)
            else segments.ids_digest(segment, **names)
        )
        was_held = bool(became["hit"])
        n_tokens = meta["prompt_tokens"] - 1
        return {"stored": True, "was_held": was_held, "tokens": n_tokens, "digest": digest}

    def _prompt(self, segment: str | list[int], salt: str) -> Any:
        from sglang.srt.disaggregation.utils import FAKE_BOOTSTRAP_HOST  # noqa: PLC0415
        from sglang.srt.managers.io_struct import GenerateReqInput  # noqa: PLC0415

        sampling: dict[str, Any] = {"max_new_tokens": 1, "temperature": 0}
        if isinstance(segment, str):
            prompt: dict[str, Any] = {"text": f"{segment}{self._settings.separator}."}
        else:
            sampling["custom_params"] = {"pic": {"segment_ends": [len(segment)]}}
            prompt = {"input_ids": [*segment, segment[-1]]}
        if self._settings.role == "prefill":  # nobody shall receive it
            prompt |= {"bootstrap_host": FAKE_BOOTSTRAP_HOST, "bootstrap_room": 0}
        return GenerateReqInput(sampling_params=sampling, extra_key=salt or None, **prompt)
