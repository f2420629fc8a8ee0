"""GET /healthz: 200 while the event loop turns, whether or not anything can be watched.

Does not tell whether kube-apiserver answers: a restart of this process would not bring it back.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from .errors import SettingsError

_PATH = "/healthz"
_END_WITHIN_S = 1.0


@asynccontextmanager
async def answering(port: int) -> AsyncIterator[None]:
    """Answer on this port, 0 for none, until the block ends.

    Raises:
        SettingsError: the port cannot be listened on.
    """
    if not port:
        yield
        return
    application = web.Application()
    application.router.add_get(_PATH, _alive)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=_END_WITHIN_S)
    await runner.setup()
    try:
        await _listen(runner, port)
        yield
    finally:
        await runner.cleanup()


async def _listen(runner: web.AppRunner, port: int) -> None:
    try:
        await web.TCPSite(runner, port=port).start()
    except OSError as error:
        raise SettingsError(f"--health-port or HYPIC_HEALTH_PORT: {error}") from error


async def _alive(_: web.Request) -> web.Response:
    return web.json_response({})
