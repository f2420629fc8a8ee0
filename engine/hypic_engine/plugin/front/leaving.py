"""Has SIGTERM end the engine from the start, and not only from its first request on.

SGLang 0.5.14 takes the signal over with the first request. Before that it is the HTTP server's, and
that waits for every connection to close: one that follows ``/pic/events`` never does.
"""

from .door import App, Message, Receive, Send


class Leaving:
    """Wraps an ASGI application."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve; first of all as if a request had come."""
        if scope["type"] == "lifespan":
            _listen()
        await self._app(scope, receive, send)


def _listen() -> None:
    from sglang.srt.entrypoints import http_server  # noqa: PLC0415

    state = http_server.get_global_state()
    if state is not None:
        state.tokenizer_manager.auto_create_handle_loop()
