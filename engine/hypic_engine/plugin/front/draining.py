"""``/pic/drain``: no new requests, and what is still inside."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request

from ...errors import RequestError
from . import replies
from .attendance import Attendance

DEADLINE_LIMIT_S = 86_400


def _deadline_s(fields: Any) -> float:
    value: Any = fields.get("deadline_s") if isinstance(fields, dict) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= DEADLINE_LIMIT_S:  # also refuses NaN
        raise RequestError(
            "deadline_s", f"must be a number of seconds above 0 and at most {DEADLINE_LIMIT_S}"
        )
    return float(value)


class Draining:
    """The routes of a drain; `scheduler` tells what the scheduler does, or nothing."""

    def __init__(
        self, attendance: Attendance, scheduler: Callable[[], Awaitable[dict[str, Any]]]
    ) -> None:
        self._attendance = attendance
        self._scheduler = scheduler

    async def begin(self, request: Request) -> Any:
        """Take no new requests until `end`; those inside go on, to the nearest deadline asked."""
        try:
            deadline_s = _deadline_s(await replies.fields_of(request))
        except RequestError as error:
            return replies.bad(error)
        self._attendance.drain(deadline_s)
        return await self.state()

    async def end(self) -> Any:
        """Take requests again."""
        self._attendance.resume()
        return await self.state()

    async def state(self) -> Any:
        """What is still inside, until its answer has left this process, and for how long."""
        inside, load = self._attendance.inside(), await self._scheduler()
        queued = min(inside.n_requests, load.get("queued", 0))
        left_s = self._attendance.drain_left_s
        return replies.json_of(
            {
                "draining": left_s is not None,
                "running": inside.n_requests - queued,
                "queued": queued,
                "transfers": load.get("transfers", 0),
                "oldest_s": round(inside.oldest_s, 1),
                "left_s": None if left_s is None else round(left_s, 1),
            }
        )
