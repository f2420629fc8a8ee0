"""Every error the router raises on purpose; each leaf knows how the client hears of it.

    RouterError                     an HTTP status, a word for metrics, OpenAI's fields
    +-- ClientError                     the request cannot be served as sent
    |   +-- BadRequestError       400   a field at fault
    |   +-- BodyTooLargeError     413
    |   +-- BodyTooSlowError      408
    |   +-- BadHttpError          400   not HTTP/1.1 that can be read
    |   |   +-- HeadTooLargeError 431
    |   +-- NotFoundError         404
    |   +-- ModelError            404   another model
    |   +-- MethodNotAllowedError 405
    +-- CrowdedError              503   no memory for one more body
    +-- NotAcceptingError         503   the router has only begun, or ends
    +-- NoEngineError             503   nobody to send it to
    +-- EngineError                     an engine failed before anything reached the client
        +-- UnreachableError      503   no connection
        +-- StaleError            502   a kept connection had been closed by the engine
        +-- BrokenError           502   the connection broke, or what came was not HTTP
        +-- LateError             504   no answer in time
        +-- LostError             503   the engine vanished while the request waited
        +-- DrainingError         503   the engine takes no new requests
        +-- PairError             502   one of a pair says that it failed
        +-- ClosingError          503   the router ends before the answer did

Does not hold: what engines answer with a status of their own, which passes through; what keeps
requests from engines (`guard.refusals`).
"""

from typing_extensions import override

from .core.sse import error_body


class RouterError(Exception):
    """Root: what the client is told.

    Attributes:
        status: HTTP status.
        kind: OpenAI's error type.
        code: a stable word for programs, also the label in metrics.
        param: the field at fault.
        retry_after_s: when to come back.
    """

    status = 500
    kind = "server_error"
    code = "internal_error"
    retry_after_s: int | None = None

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer, beside its type."""
        return {} if self.retry_after_s is None else {"Retry-After": str(self.retry_after_s)}

    @property
    def body(self) -> bytes:
        """The answer's JSON."""
        return error_body(str(self), kind=self.kind, param=self.param, code=self.code)


class ClientError(RouterError):
    """The request cannot be served as sent."""

    status = 400
    kind = "invalid_request_error"
    code = "invalid_request"


class BadRequestError(ClientError):
    """A field is missing, wrong or past a limit."""


class BodyTooLargeError(ClientError):
    """The body is longer than allowed."""

    status = 413
    code = "body_too_large"


class BodyTooSlowError(ClientError):
    """The body did not arrive in time."""

    status = 408
    code = "body_too_slow"


class BadHttpError(ClientError):
    """What came is not HTTP/1.1 that can be read."""

    code = "bad_http"

    def __init__(self, message: str = "the request is not HTTP/1.1 that can be read") -> None:
        super().__init__(message)


class HeadTooLargeError(BadHttpError):
    """The request's line and headers, or what stands between its chunks, are too long."""

    status = 431

    def __init__(self) -> None:
        super().__init__("the request's line and headers are too long")


class NotFoundError(ClientError):
    """There is no such route."""

    status = 404
    code = "not_found"


class ModelError(ClientError):
    """The request names a model that is not served here."""

    status = 404
    code = "model_not_found"


class MethodNotAllowedError(ClientError):
    """The route exists, for other methods."""

    status = 405
    code = "method_not_allowed"

    def __init__(self, message: str, *, allow: str) -> None:
        super().__init__(message)
        self.allow = allow

    @property
    @override
    def headers(self) -> dict[str, str]:
        """Names the methods that are allowed."""
        return {"Allow": self.allow}


class CrowdedError(RouterError):
    """The router holds as many request bodies as it may."""

    status = 503
    code = "router_crowded"
    retry_after_s = 1


class NotAcceptingError(RouterError):
    """The router itself should be sent nothing: it does not know engines yet, or it ends."""

    status = 503
    code = "not_accepting"
    retry_after_s = 2


class NoEngineError(RouterError):
    """There is nobody to send the request to."""

    status = 503
    code = "no_engine"
    retry_after_s = 2


class EngineError(RouterError):
    """An engine failed a request of which nothing had reached the client.

    Attributes:
        at: names of the engines whose fault it may be.
    """

    status = 502
    code = "engine_failed"
    retry_after_s = 1
    at: tuple[str, ...] = ()


class UnreachableError(EngineError):
    """No connection could be made."""

    status = 503
    code = "engine_unreachable"


class StaleError(EngineError):
    """A kept connection turned out to be closed: the engine has not seen the request."""

    code = "engine_closed_connection"


class BrokenError(EngineError):
    """The connection broke, or what came over it was not HTTP."""

    code = "engine_broken"


class LateError(EngineError):
    """No answer in time."""

    status = 504
    code = "engine_late"


class LostError(EngineError):
    """The engine vanished while the request waited for it."""

    status = 503
    code = "engine_lost"


class DrainingError(EngineError):
    """The engine takes no new requests."""

    status = 503
    code = "engine_draining"


class PairError(EngineError):
    """One of a pair answered that it failed, which may be the other's fault."""

    code = "pair_failed"


class ClosingError(EngineError):
    """The router ends before the answer did."""

    status = 503
    code = "router_closing"
