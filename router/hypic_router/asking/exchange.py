"""One request at one engine: sends it and waits for something to show, then relays it.

Knows neither the server's nor the client's side of HTTP. Leaving `Exchange.ask` in any way,
cancelled too, closes the engine's connection unless the answer was read to its end, and that is
what makes the engine abort.
"""

from dataclasses import dataclass
from http import HTTPStatus

from ..call import Call, Caller
from ..core import headers, sse
from ..core.prompt import Prompt
from ..core.sse import Tail
from ..errors import BrokenError, DrainingError, EngineError, LateError, PairError, StaleError
from ..fleet import Ticket
from ..wire.upstream import Answer
from .patience import Patience
from .relay import First, Relay, Told, Tools

# A plain answer up to this size is sent whole, so that one that breaks off can be asked again.
WHOLE_BYTES = 1 << 20
# Of an engine's own error in one of ours.
WORDS = 300


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request at one engine that it is counted at.

    Attributes:
        tools: shared by all.
        ticket: the engine.
        call: what to send.
        prompt: what that asks for.
        told: what is said of the choice.
        fresh: whether to use a new connection.
    """

    tools: Tools
    ticket: Ticket
    call: Call
    prompt: Prompt
    told: Told
    fresh: bool

    @property
    def _paired(self) -> bool:
        return self.told.engine != self.ticket.at.name

    async def ask(self, caller: Caller) -> int:
        """The status that was sent; afterwards the request is not counted any longer.

        Raises:
            EngineError: the engine failed before anything reached the client; it says which.
        """
        failed = False
        try:
            status, failed = await self._run(caller)
        except EngineError as error:
            failed = not isinstance(error, StaleError | DrainingError | PairError)
            error.at = (self.ticket.at.name,)
            raise
        else:
            return status
        finally:
            self.tools.store.ended(self.ticket, failed=failed)

    async def _run(self, caller: Caller) -> tuple[int, bool]:
        """The status that was sent, and whether the answer broke off after it had begun."""
        patience, limits = Patience(), self.tools.limits
        self.ticket.on_lost = patience.give_up
        answer: Answer | None = None
        try:
            async with patience.within(
                limits.first_byte_s if self.prompt.stream else limits.answer_s
            ):
                answer = await self._send()
                first = await _first(answer)
            if self._paired:
                _check(answer, first)
            self.tools.store.answered(self.ticket)
            relay = Relay(self.tools, self.call, self.told, patience)
            return answer.status, await relay.run(answer, first, caller)
        except TimeoutError as error:
            raise patience.given_up or LateError("the engine did not answer in time") from error
        finally:
            if answer is not None:
                answer.close()

    async def _send(self) -> Answer:
        call = self.call
        answer = await self.tools.upstream.send(
            self.ticket.at.url,
            call.method,
            call.target,
            headers=headers.for_engine(
                call.headers, request_id=call.request_id, stream=self.prompt.stream
            ),
            body=call.body,
            fresh=self.fresh,
        )
        if (
            answer.status == HTTPStatus.SERVICE_UNAVAILABLE
            and answer.headers.get("x-hypic-draining") == "1"
        ):
            answer.close()
            raise DrainingError("the engine takes no new requests")
        return answer


async def _first(answer: Answer) -> First:
    """Waits until there is something to show."""
    if not answer.headers.get("content-type", "").startswith("text/event-stream"):
        data = bytearray()
        while chunk := await answer.read():
            data += chunk
            if len(data) > WHOLE_BYTES:
                return First(bytes(data), None, whole=False)
        return First(bytes(data), None, whole=True)
    if answer.headers.get("content-encoding", "identity") != "identity":
        return First(await answer.read(), None, whole=False)
    tail = Tail()
    while chunk := await answer.read():
        ready, tail = sse.passed(tail, chunk)
        if ready:
            return First(ready, tail, whole=False)
    raise BrokenError("the engine ended its stream before the first event")


def _check(answer: Answer, first: First) -> None:
    """Whether one of a pair says that it failed; in a stream only an event can say it.

    Raises:
        PairError: it does.
    """
    if answer.status == HTTPStatus.SERVICE_UNAVAILABLE:
        return
    failed = answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    if failed or (first.tail is not None and sse.failed(first.data)):
        words = first.data[:WORDS].decode("utf-8", "replace").strip()
        raise PairError(f"one of the pair answered {answer.status}: {words}")
