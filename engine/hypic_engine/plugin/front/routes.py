"""HTTP routes under ``/pic`` in SGLang's own server.

Translates between HTTP and `control`; they exist even when segments are not cached.
"""

import contextlib
import dataclasses
import json
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

from fastapi.responses import StreamingResponse

from .. import control
from ..settings import Settings
from . import replies
from .attendance import Attendance
from .changes import Changes
from .door import Door
from .draining import Draining
from .early import Early
from .leaving import Leaving
from .warming import Warming

STALE_AFTER_S = 10.0
READY = "/pic/ready"
WARM = "/pic/warm"
# Ends work instead of bringing it.
_ENDS_WORK = frozenset({"/close_session"})


class Routes:
    """The plugin's routes."""

    def __init__(self, settings: Settings, early: Early) -> None:
        self._settings = settings
        self._early = early
        self._attendance = Attendance(Path(settings.control_path).parent)

    def add(self, *args: object, **kwargs: object) -> None:
        """Before ``http_server._setup_and_run_http_server``, and once in each HTTP worker."""
        from sglang.srt.entrypoints.http_server import app  # noqa: PLC0415 - heavy, and only here

        if any(getattr(route, "path", None) == READY for route in app.routes):
            return
        self._stand_at_the_door(app)
        draining = Draining(self._attendance, self._scheduler)
        changes = Changes(enabled=self._settings.caches)
        warming = Warming(self._settings)
        for method, path, handler in (
            ("GET", READY, self.ready),
            ("GET", "/pic/info", _keyed(self.info)),
            ("GET", "/pic/segments", _keyed(self.segments)),
            ("GET", "/pic/events", _keyed(self.events)),
            ("GET", "/pic/drain", _keyed(draining.state)),
            ("POST", "/pic/drain", _keyed(draining.begin)),
            ("DELETE", "/pic/drain", _keyed(draining.end)),
            ("POST", WARM, _keyed(warming.warm)),
            ("POST", "/pic/pin", _keyed(changes.pin)),
            ("DELETE", "/pic/pin", _keyed(changes.unpin)),
            ("POST", "/pic/evict", _keyed(changes.evict)),
        ):
            app.add_api_route(path, handler, methods=[method], response_model=None)

    @staticmethod
    def admit(original: Callable[..., Any], *args: Any, path: str, **kwargs: Any) -> Any:
        """Around ``auth.decide_request_auth``: kubelets have no key, so `/pic/ready` needs none."""
        shown = "/health" if path == READY else path
        return original(*args, path=shown, **kwargs)

    def _stand_at_the_door(self, app: Any) -> None:
        door = partial(Door, attendance=self._attendance, paths=_paths_of_work(app))
        if app.middleware_stack is None:
            app.add_middleware(door)
            app.add_middleware(partial(Leaving, close=self._early.close))
        else:  # an HTTP worker loads plugins when its application has already started
            app.middleware_stack = door(app.middleware_stack)

    async def _one(self, question: dict[str, Any]) -> bytes | None:
        with contextlib.suppress(OSError):
            async with contextlib.aclosing(
                control.ask(self._settings.control_path, question)
            ) as lines:
                async for line in lines:
                    return line
        return None

    async def _scheduler(self) -> dict[str, Any]:
        answer = await self._one({"ask": "info"}) if self._settings.caches else None
        state: dict[str, Any] = json.loads(answer) if answer is not None else {}
        return state

    async def ready(self) -> Any:
        """200 when weights are loaded, the scheduler's loop turns and no drain is on; else 503.

        One batch may take long; SGLang's own watchdog ends a scheduler that hangs in one.
        """
        left_s = self._attendance.drain_left_s
        if left_s is not None:
            n_requests = self._attendance.inside().n_requests
            return replies.unready(f"draining: {n_requests} requests inside, {left_s:.0f} s left")
        if not self._settings.caches:
            return replies.ready() if _stock_is_up() else replies.unready(replies.STARTING)
        state = await self._scheduler()
        if not state.get("started"):
            return replies.unready(replies.STARTING)
        if state["computing"] or state["silent_s"] < STALE_AFTER_S:
            return replies.ready()
        return replies.unready(f"the scheduler has been silent for {state['silent_s']:.0f} s")

    async def info(self) -> Any:
        """Settings and sizes."""
        answer = await self._one({"ask": "info"})
        settings = dataclasses.asdict(self._settings)
        del settings["control_path"]
        engine = json.loads(answer) if answer else None
        answered = answer is not None or not self._settings.caches
        return replies.json_of(
            {"settings": settings, "engine": engine}, status=200 if answered else 503
        )

    async def segments(self, cursor: str | None = None) -> Any:
        """One page of what is held."""
        if not self._settings.caches:
            return replies.off()
        answer = await self._one({"ask": "segments", "cursor": cursor})
        if answer is None:
            return replies.json_of({"error": "the scheduler does not answer"}, status=503)
        return replies.raw(answer)

    async def events(self, epoch: str = "", after: int | None = None) -> Any:
        """Events as newline-delimited JSON until the client leaves."""
        if not self._settings.caches:
            return replies.off()
        question = {"ask": "events", "epoch": epoch, "after": after}
        lines = control.ask(self._settings.control_path, question)
        return StreamingResponse(_until_gone(lines), media_type="application/x-ndjson")


async def _until_gone(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    with contextlib.suppress(OSError):
        async for line in lines:
            yield line


def _stock_is_up() -> bool:
    from sglang.srt.entrypoints import http_server  # noqa: PLC0415
    from sglang.srt.managers.tokenizer_manager import ServerStatus  # noqa: PLC0415

    state = http_server.get_global_state()
    return state is not None and state.tokenizer_manager.server_status is ServerStatus.Up


def _keyed(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Protected as SGLang's own control routes: by the admin key, else the API key, else open."""
    from sglang.srt.utils.auth import AuthLevel, auth_level  # noqa: PLC0415

    auth_level(AuthLevel.ADMIN_OPTIONAL)(handler.__func__)  # type: ignore[attr-defined]
    return handler


def _paths_of_work(app: Any) -> frozenset[str]:
    """Paths whose requests are work: SGLang's own, but those that control it, and ours."""
    routes = [
        route.path
        for route in app.routes
        if {"POST", "PUT"} & set(getattr(route, "methods", None) or ())
        and not hasattr(route.endpoint, "_auth_level")
    ]
    return frozenset({WARM, *(path for path in routes if "{" not in path)}) - _ENDS_WORK
