"""HTTP routes under ``/pic`` in SGLang's own server.

Translates between HTTP and `control`; they exist even when segments are not cached.
"""

import contextlib
import dataclasses
import json
from collections.abc import AsyncIterator
from typing import Any

from .. import control
from ..settings import Settings

STALE_AFTER_S = 10.0
JSON = "application/json"


class Routes:
    """The plugin's routes."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def add(self, *args: object, **kwargs: object) -> None:
        """Before ``http_server._setup_and_run_http_server``, and once in each HTTP worker."""
        from sglang.srt.entrypoints.http_server import app  # noqa: PLC0415 - heavy, and only here

        paths = {getattr(route, "path", None) for route in app.routes}
        handlers = {
            "/pic/ready": self.ready,
            "/pic/info": self.info,
            "/pic/segments": self.segments,
            "/pic/events": self.events,
        }
        for path, handler in handlers.items():
            if path not in paths:
                app.add_api_route(path, handler, methods=["GET"], response_model=None)

    async def _one(self, question: dict[str, Any]) -> bytes | None:
        with contextlib.suppress(OSError):
            async with contextlib.aclosing(
                control.ask(self._settings.control_path, question)
            ) as lines:
                async for line in lines:
                    return line
        return None

    async def ready(self) -> Any:
        """200 when weights are loaded and the scheduler's loop turns, else 503 with a reason.

        One batch may take long; SGLang's own watchdog ends a scheduler that hangs in one.
        """
        if not self._settings.enabled:
            return _json({"ready": True}) if _stock_is_up() else _starting()
        answer = await self._one({"ask": "info"})
        state = json.loads(answer) if answer is not None else {}
        if not state.get("started"):
            return _starting()
        if state["computing"] or state["silent_s"] < STALE_AFTER_S:
            return _json({"ready": True})
        reason = f"the scheduler has been silent for {state['silent_s']:.0f} s"
        return _json({"ready": False, "reason": reason}, 503)

    async def info(self) -> Any:
        """Settings and sizes."""
        answer = await self._one({"ask": "info"})
        settings = dataclasses.asdict(self._settings)
        del settings["control_path"]
        engine = json.loads(answer) if answer else None
        answered = answer is not None or not self._settings.enabled
        return _json({"settings": settings, "engine": engine}, status=200 if answered else 503)

    async def segments(self, cursor: str | None = None) -> Any:
        """One page of what is held."""
        if not self._settings.enabled:
            return _off()
        answer = await self._one({"ask": "segments", "cursor": cursor})
        if answer is None:
            return _json({"error": "the scheduler does not answer"}, status=503)
        return _raw(answer)

    async def events(self, epoch: str = "", after: int | None = None) -> Any:
        """Events as newline-delimited JSON until the client leaves."""
        from fastapi.responses import StreamingResponse  # noqa: PLC0415

        if not self._settings.enabled:
            return _off()
        question = {"ask": "events", "epoch": epoch, "after": after}
        lines = control.ask(self._settings.control_path, question)
        return StreamingResponse(_until_gone(lines), media_type="application/x-ndjson")


async def _until_gone(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    with contextlib.suppress(OSError):
        async for line in lines:
            yield line


def _raw(body: bytes, status: int = 200) -> Any:
    from fastapi.responses import Response  # noqa: PLC0415

    return Response(body, status_code=status, media_type=JSON)


def _json(body: dict[str, Any], status: int = 200) -> Any:
    return _raw(json.dumps(body).encode(), status)


def _stock_is_up() -> bool:
    from sglang.srt.entrypoints import http_server  # noqa: PLC0415
    from sglang.srt.managers.tokenizer_manager import ServerStatus  # noqa: PLC0415

    state = http_server.get_global_state()
    return state is not None and state.tokenizer_manager.server_status is ServerStatus.Up


def _starting() -> Any:
    return _json({"ready": False, "reason": "the scheduler has not started yet"}, 503)


def _off() -> Any:
    return _json({"error": "segments are not cached: start with --pic-enable"}, status=404)
