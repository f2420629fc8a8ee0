"""Turns the bytes of one connection into requests, within limits.

Does not write and does not serve; what llhttp refuses is refused.
"""

from collections.abc import Callable

import httptools
from multidict import CIMultiDict

from ..errors import BadHttpError, HeadTooLargeError
from .request import Body, Request, decoded_path, origin_form


class Reading:
    """The requests of one connection, told as soon as their head is whole."""

    def __init__(
        self,
        *,
        head_bytes: int,
        begun: Callable[[Request], None],
        taken: Callable[[], None],
        proceed: Callable[[], None],
    ) -> None:
        """Starts before the first byte.

        Args:
            head_bytes: of a request's line and headers together; also of what may come within a
                body and be none of it.
            begun: gets each request.
            taken: called when a body's waiting bytes were taken.
            proceed: called when a client that waits for it should send its body.
        """
        self._parser = httptools.HttpRequestParser(self)
        self._most_bytes = head_bytes
        self._begun = begun
        self._taken = taken
        self._proceed = proceed
        self._incoming: Request | None = None
        self._fruitless_bytes = 0
        self._unparsed_bytes = 0
        self.on_message_begin()

    @property
    def in_head(self) -> bool:
        """Whether a part of a head has come."""
        return self._incoming is None and self._fruitless_bytes > 0

    @property
    def crowded(self) -> bool:
        """Whether more of a body waits than should."""
        return self._incoming is not None and self._incoming.body.crowded

    def feed(self, data: bytes) -> bool:
        """Takes bytes; returns whether any that follow may be read.

        Raises:
            BadHttpError: they are not HTTP/1.1, or too many.
        """
        if self._unparsed_bytes:
            return self._feed_unparsed(data)
        self._fruitless_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            return self._feed_unparsed(data[offer.args[0] :])
        except httptools.HttpParserCallbackError as error:
            raise _cause(error) from error
        except httptools.HttpParserError as error:
            raise BadHttpError from error
        if self._fruitless_bytes > self._most_bytes:
            raise HeadTooLargeError
        if self._incoming is not None:
            self._incoming.body.wake()
        return True

    def _feed_unparsed(self, data: bytes) -> bool:
        """The body of a request that offers another protocol, which llhttp takes for that protocol.

        It is answered as if nothing had been offered, and is the last one on its connection.
        """
        if self._incoming is None:
            return False
        piece = data[: self._unparsed_bytes]
        self._unparsed_bytes -= len(piece)
        self._incoming.body.feed(piece)
        if not self._unparsed_bytes:
            self._incoming.body.finish()
            self._incoming = None
            return False
        self._incoming.body.wake()
        return True

    def fail(self, error: BadHttpError) -> bool:
        """Tells whoever reads the body that is coming; returns whether there is one."""
        if self._incoming is None:
            return False
        self._incoming.body.fail(error)
        return True

    # The parser's calls, in the order of a message.

    def on_message_begin(self) -> None:
        """A head begins."""
        self._target = b""
        self._headers: list[tuple[str, str]] = []
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        """A piece of the request's target."""
        self._target += url
        self._head_bytes += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which nobody reads."""
        self._headers.append((name.decode("latin-1"), value.decode("latin-1")))
        self._head_bytes += len(name) + len(value) + 4

    def on_headers_complete(self) -> None:
        """The head is whole."""
        if self._head_bytes > self._most_bytes:
            raise HeadTooLargeError
        self._fruitless_bytes = 0
        request = self._request()
        self._begun(request)
        self._incoming = request

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        self._fruitless_bytes = 0
        assert self._incoming is not None
        self._incoming.body.feed(data)

    def on_message_complete(self) -> None:
        """The body is whole."""
        self._fruitless_bytes = 0
        assert self._incoming is not None
        if self._parser.should_upgrade() and self._incoming.length != 0:
            if self._incoming.length is None:
                raise BadHttpError("another protocol and a body in chunks do not go together")
            self._unparsed_bytes = self._incoming.length
            return
        self._incoming.body.finish()
        self._incoming = None

    def _request(self) -> Request:
        headers = CIMultiDict(self._headers)
        target = origin_form(self._target.decode("latin-1"))
        modern = self._parser.get_http_version() == "1.1"
        chunked = "transfer-encoding" in headers
        patient = modern and "100-continue" in headers.get("expect", "").lower()
        return Request(
            method=self._parser.get_method().decode("latin-1"),
            target=target,
            path=decoded_path(target),
            headers=headers,
            length=None if chunked else int(headers.get("content-length", 0)),
            persistent=modern
            and self._parser.should_keep_alive()
            and not self._parser.should_upgrade(),
            chunks=modern,
            body=Body(self._taken, self._proceed if patient else None),
        )


def _cause(error: httptools.HttpParserCallbackError) -> BadHttpError:
    cause = error.__context__
    return cause if isinstance(cause, BadHttpError) else BadHttpError()
