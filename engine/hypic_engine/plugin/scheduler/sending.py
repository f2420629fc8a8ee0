"""Hooks on a prefill server that sends its prompts to decode servers.

Fills go to nobody, and a linear state that could not be sent fails its request: SGLang 0.5.14
throws away the outcome of that transfer, and both servers answer 200 with wrong tokens.
"""

from collections.abc import Callable
from typing import Any

from sglang.srt.disaggregation.fake.conn import FakeKVSender
from sglang.srt.disaggregation.utils import FAKE_BOOTSTRAP_HOST


def prepare(fill: Any) -> None:
    """Let SGLang's queues, which ask every request's sender, find one."""
    fill.disagg_kv_sender = FakeKVSender(None, "", 0, [], 0)
    fill.bootstrap_host = FAKE_BOOTSTRAP_HOST


class Sending:
    """Hooks of one scheduler and on its transfer threads."""

    def __init__(self) -> None:
        # Rooms whose state did not arrive; each belongs to one transfer thread.
        self._broken: set[int] = set()

    @staticmethod
    def send(original: Callable[..., Any], scheduler: Any, req: Any, *args: Any, **kw: Any) -> Any:
        """Around ``send_kv_chunk``: a fill is done as soon as it is computed."""
        if getattr(req, "hypic_fill", False):
            req.disagg_kv_sender.send([])
            return None
        return original(scheduler, req, *args, **kw)

    def send_state(self, original: Callable[..., Any], manager: Any, req: Any, *args: Any) -> Any:
        """Around ``MooncakeKVManager.maybe_send_extra``: remember a failure."""
        outcome = original(manager, req, *args)
        if outcome:
            self._broken.add(req.room)
        return outcome

    def send_rest(self, original: Callable[..., Any], manager: Any, req: Any, *args: Any) -> Any:
        """Around ``MooncakeKVManager.send_aux``, whose outcome counts: pass the failure on."""
        if req.room in self._broken:
            self._broken.discard(req.room)
            return -1
        return original(manager, req, *args)
