"""What happens when SGLang's own application starts: the early server leaves, and SIGTERM is heard.

SGLang 0.5.14 takes the signal over with the first request. Before that it is the HTTP server's, and
that waits for every connection to close: one that follows ``/pic/events`` never does.
"""

from collections.abc import Callable

from .door import App, Message, Receive, Send


class Leaving:
    """Wraps an ASGI application.

    Args:
        app: the application.
        close: called when it has started, just before its address is bound.
    """

    def __init__(self, app: App, *, close: Callable[[], None]) -> None:
        self._app = app
        self._close = close

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve; first of all as if a request had come."""
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return

        async def tell(message: Message) -> None:
            self._close()
            await send(message)

        _listen()
        await self._app(scope, receive, tell)


def _listen() -> None:
    from sglang.srt.entrypoints import http_server  # noqa: PLC0415

    state = http_server.get_global_state()
    if state is not None:
        state.tokenizer_manager.auto_create_handle_loop()
