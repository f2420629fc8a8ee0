"""``/pic/pin`` and ``/pic/evict``: orders to the cache, carried to all scheduler ranks.

Translates between HTTP and `orders`; what they do is `scheduler.keeping`'s.
"""

from typing import Any

from fastapi import Request

from ...core.selection import selection
from ...errors import RequestError
from ..orders import Action, Order, Outcome
from . import replies


class Changes:
    """Routes that change what is cached."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._carry: Any = None

    async def pin(self, request: Request) -> Any:
        """Let the selected segments leave last."""
        return await self._order(Action.PIN, request)

    async def unpin(self, request: Request) -> Any:
        """Let them leave as all others."""
        return await self._order(Action.UNPIN, request)

    async def evict(self, request: Request) -> Any:
        """Forget the selected segments, but those that running requests read."""
        return await self._order(Action.EVICT, request)

    async def _order(self, action: Action, request: Request) -> Any:
        if not self._enabled:
            return replies.off()
        try:
            order = Order(action=action, selection=selection(await replies.fields_of(request)))
        except RequestError as error:
            return replies.bad(error)
        outcome: Outcome = (await self._messenger()(order))[0]
        if outcome.refused:
            return replies.json_of({"error": outcome.refused}, 400)
        return replies.json_of(
            {
                "segments": outcome.n_segments,
                "tokens": outcome.n_tokens,
                "in_use": outcome.n_in_use,
                "pinned_tokens": outcome.n_pinned_tokens,
                "limit_tokens": outcome.limit_tokens,
            }
        )

    def _messenger(self) -> Any:
        """SGLang's way of asking the scheduler, made when the first order comes."""
        from sglang.srt.entrypoints.http_server import get_global_state  # noqa: PLC0415
        from sglang.srt.managers.communicator import FanOutCommunicator  # noqa: PLC0415
        from sglang.utils import TypeBasedDispatcher  # noqa: PLC0415

        manager = get_global_state().tokenizer_manager
        manager.auto_create_handle_loop()
        if self._carry is None:
            self._carry = FanOutCommunicator(manager.send_to_scheduler, 1)
            answers = TypeBasedDispatcher([(Outcome, self._carry.handle_recv)])
            manager._result_dispatcher += answers  # noqa: SLF001
        return self._carry
